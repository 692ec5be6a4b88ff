package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// ClaimOrder asks for the oldest due push of a recipient.
type ClaimOrder struct {
	RecipientKey int64
	Policy       quota.Policy
	Lease        time.Duration // how long the attempt may take before it counts as lost

	Channel string   // of the push; empty: any, but for those of Without
	Without []string // channels that can take no push now

	token uuid.UUID // of the attempt, so that a claim run again knows its own
}

// Patience is how long a claim may ask its caller to wait instead of putting
// the push off: so that sends exactly a window apart keep their pace.
const Patience = 2 * time.Second

// ClaimOutcome says what a claim found.
type ClaimOutcome int

// What a claim can find.
const (
	Nothing  ClaimOutcome = iota // no push is due, or another attempt is under way and will look again when it ends
	Claimed                      // the push is the caller's to send, until LeaseUntil
	Wait                         // the push is due, or may be sent, in less than Patience, or the recipient is being booked for: claim again then
	Deferred                     // the push was put off to NextAt, by the recipient's actual sends; others may be due
	TooLate                      // the push had expired, and now says so; others may be due
	Again                        // somebody else was faster: claim again
)

// Claim is the answer to a [ClaimOrder].
type Claim struct {
	Outcome    ClaimOutcome
	Push       push.Push
	Token      uuid.UUID     // names the attempt when it is finished
	Attempt    int           // 1, 2, …
	StartedAt  time.Time     // by Postgres' clock, as all times here
	LeaseUntil time.Time     //
	Wait       time.Duration // for Wait
	Now        time.Time     // when the claim looked
	Left       []string      // channels of Without for which the recipient has a push that is due
}

// Claim takes the oldest due push of the recipient for sending, if the
// recipient's actual sends leave a place for one now. It works together with
// other claims of the moment.
func (s *Store) Claim(ctx context.Context, o ClaimOrder) (Claim, error) {
	if err := ctx.Err(); err != nil {
		return Claim{}, err
	}
	o.token = uuid.New()
	return s.claims.Do(o)
}

func (s *Store) claimTogether(ctx context.Context, orders []ClaimOrder) ([]Claim, error) {
	var claims []Claim
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		locks := tryLockSQL
		if earlier > 0 {
			locks = lockSQL // an earlier run may not have ended yet
		}
		var err error
		claims, err = s.claim(ctx, c, locks, orders)
		return err
	})
	return claims, err
}

// claim is one run of the transaction.
func (s *Store) claim(ctx context.Context, c *pgxpool.Conn, locks string, orders []ClaimOrder) ([]Claim, error) {
	found, err := s.look(ctx, c, locks, orders)
	if err != nil {
		return nil, err
	}
	claims := make([]Claim, len(orders))
	w := newClaimWrite(found.now)
	first := firstOrders(orders)
	for i, o := range orders {
		claims[i].Now = found.now
		if j := first[o.RecipientKey]; j < i {
			if orders[j].Channel != o.Channel {
				claims[i].Outcome = Again
			}
			continue // Nothing: the first one's caller looks again, also for the others
		}
		d := found.of(o.RecipientKey)
		claims[i] = found.decide(o)
		claims[i].Now, claims[i].Left = found.now, d.left
		w.add(i, claims[i], d)
	}
	failpoint.Hit(failpoint.ClaimLocked)
	return claims, w.commit(ctx, c, claims)
}

// firstOrders finds each recipient's first order.
func firstOrders(orders []ClaimOrder) map[int64]int {
	first := make(map[int64]int, len(orders))
	for i, o := range orders {
		if _, seen := first[o.RecipientKey]; !seen {
			first[o.RecipientKey] = i
		}
	}
	return first
}

// lockWait is how long a claim of a recipient whose lock another transaction has is
// to wait. Most transactions take a few milliseconds.
const lockWait = 20 * time.Millisecond

// decide says what is to be done about one recipient's oldest due push.
func (s *claimState) decide(o ClaimOrder) Claim {
	if slices.Contains(s.locked, o.RecipientKey) {
		return Claim{Outcome: Wait, Wait: lockWait}
	}
	d := s.of(o.RecipientKey)
	p := d.push
	for _, f := range d.inFlight {
		if f.token == o.token { // committed by a run whose reply was lost
			return Claim{Outcome: Claimed, Push: f.push, Token: f.token, Attempt: f.push.Attempts, StartedAt: f.leaseUntil.Add(-o.Lease), LeaseUntil: f.leaseUntil}
		}
	}
	if p.ID == uuid.Nil || len(d.inFlight) > 0 {
		return Claim{Outcome: Nothing}
	}
	free, ok := o.Policy.Next(quota.NewTimeline(d.sends), s.now, 0)
	if !ok || free.After(p.ExpiresAt) {
		free = p.ExpiresAt // there is nothing to wait for but this
	}
	wait := max(p.NextAt.Sub(s.now), free.Sub(s.now))
	switch {
	case !s.now.Before(p.ExpiresAt):
		return Claim{Outcome: TooLate, Push: p}
	case wait > Patience:
		p.NextAt = s.now.Add(wait)
		return Claim{Outcome: Deferred, Push: p}
	case wait > 0:
		return Claim{Outcome: Wait, Push: p, Wait: wait}
	}
	return Claim{Outcome: Claimed, Push: p, Token: o.token, Attempt: p.Attempts + 1, StartedAt: s.now, LeaseUntil: s.now.Add(o.Lease)}
}
