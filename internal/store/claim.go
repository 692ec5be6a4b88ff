package store

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/faults"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// ClaimOrder asks for the oldest due push of a recipient.
type ClaimOrder struct {
	RecipientKey int64
	Policy       quota.Policy
	Lease        time.Duration // how long the attempt may take before it counts as lost

	token uuid.UUID // of the attempt, so that a claim run again knows its own
}

// Patience is how long a claim may ask its caller to wait instead of putting
// the push off: so that sends exactly a window apart keep their pace.
const Patience = 2 * time.Second

// ClaimState says what a claim found.
type ClaimState int

// What a claim can find.
const (
	Nothing  ClaimState = iota // no push is due, or another attempt is under way and will look again when it ends
	Claimed                    // the push is the caller's to send, until LeaseUntil
	Wait                       // the push is due, or may be sent, in less than Patience: claim again then
	Deferred                   // the push was put off to NextAt, by the recipient's actual sends; others may be due
	TooLate                    // the push had expired, and now says so; others may be due
	Again                      // somebody else was faster: claim again
)

// Claim is the answer to a [ClaimOrder].
type Claim struct {
	State      ClaimState
	Push       push.Push
	Token      uuid.UUID     // names the attempt when it is finished
	Attempt    int           // 1, 2, …
	StartedAt  time.Time     // by Postgres' clock, as all times here
	LeaseUntil time.Time     //
	Wait       time.Duration // for Wait
	Now        time.Time     // when the claim looked
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
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var err error
		claims, err = claim(ctx, c, orders)
		return err
	})
	return claims, err
}

// claim is one run of the transaction.
func claim(ctx context.Context, c *pgxpool.Conn, orders []ClaimOrder) ([]Claim, error) {
	found, err := look(ctx, c, orders)
	if err != nil {
		return nil, err
	}
	claims := make([]Claim, len(orders))
	w := newWriting(found.now)
	seen := map[int64]bool{}
	for i, o := range orders {
		claims[i].Now = found.now
		if seen[o.RecipientKey] {
			continue // Nothing: the first one's caller looks again, also for the others
		}
		seen[o.RecipientKey] = true
		d := found.of(o.RecipientKey)
		claims[i] = found.decide(o)
		claims[i].Now = found.now
		w.add(i, claims[i], d)
	}
	faults.Here(faults.ClaimLocked)
	return claims, w.commit(ctx, c, claims)
}

// due is what is known of one recipient key under its lock.
type due struct {
	push     push.Push
	more     bool            // another push is due as well
	inFlight []inFlight      // pushes being sent
	sends    []quota.Booking // actual sends of the push's recipient, at the latest time that each can have happened
}

type inFlight struct {
	push       push.Push
	token      uuid.UUID
	leaseUntil time.Time
}

type situation struct {
	now        time.Time
	recipients map[int64]*due
}

// longestLease is how long other workers' leases may be, or those of this one
// before its settings were changed: an attempt counts from its end, but is found
// by its beginning.
const longestLease = time.Hour

// look waits for the recipients' locks and reads, in later statements, what is
// due, what is under way and what was sent.
func look(ctx context.Context, c *pgxpool.Conn, orders []ClaimOrder) (*situation, error) {
	var (
		keys  []int64
		reach time.Duration
	)
	for _, o := range orders {
		keys = append(keys, o.RecipientKey)
		reach = max(reach, o.Policy.Reach()+max(o.Lease, longestLease))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)

	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	b.Queue(lockSQL, keys)
	b.Queue(`
		SELECT `+pushColumns+`, k.k
		FROM unnest($1::bigint[]) AS k
		CROSS JOIN LATERAL (
			SELECT * FROM (
				SELECT * FROM pushes
				WHERE recipient_key = k.k AND status = 'scheduled' AND send_at <= statement_timestamp() + $2
				OFFSET 0 -- keeps the next line from choosing another index
			) scheduled
			WHERE next_at <= statement_timestamp() + $2
			ORDER BY greatest(next_at, statement_timestamp()), send_at, id
			LIMIT 2
		) p`, keys, Patience)
	b.Queue(`
		SELECT `+pushColumns+`, k.k, p.claim_token, p.lease_until
		FROM unnest($1::bigint[]) AS k
		CROSS JOIN LATERAL (SELECT * FROM pushes WHERE recipient_key = k.k AND status = 'sending' OFFSET 0) p`, keys)
	b.Queue(`
		SELECT k.k, s.tenant_id, s.recipient, s.push_id, coalesce(s.handed_at, s.ended_at) AS at
		FROM unnest($1::bigint[]) AS k
		CROSS JOIN LATERAL (
			SELECT tenant_id, recipient, push_id, handed_at, ended_at FROM sends
			WHERE recipient_key = k.k AND started_at > statement_timestamp() - $2::interval AND outcome IN ('delivered', 'unknown')
			OFFSET 0
		) s
		ORDER BY k.k, at`, keys, reach)
	b.Queue(`SELECT clock_timestamp()`) // last: an attempt that was seen to have ended did so before the next begins
	res := c.SendBatch(ctx, b)
	found, err := readSituation(res, len(keys))
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	return found, err
}

func readSituation(res pgx.BatchResults, recipients int) (*situation, error) {
	for range 2 {
		if _, err := res.Exec(); err != nil {
			return nil, err
		}
	}
	found := &situation{recipients: make(map[int64]*due, recipients)}
	for _, read := range []func(pgx.CollectableRow) error{found.readDue, found.readInFlight, found.readSend} {
		rows, _ := res.Query()
		for rows.Next() {
			if err := read(rows); err != nil {
				rows.Close()
				return nil, err
			}
		}
		if err := rows.Err(); err != nil {
			return nil, err
		}
	}
	return found, res.QueryRow().Scan(&found.now)
}

func (s *situation) readDue(row pgx.CollectableRow) error {
	var key int64
	p, err := scanPush(row, &key)
	if d := s.of(key); d.push.ID == uuid.Nil {
		d.push = p
	} else {
		d.more = true
	}
	return err
}

func (s *situation) readInFlight(row pgx.CollectableRow) error {
	var (
		key int64
		f   inFlight
		err error
	)
	f.push, err = scanPush(row, &key, (*[16]byte)(&f.token), &f.leaseUntil)
	s.of(key).inFlight = append(s.of(key).inFlight, f)
	return err
}

func (s *situation) readSend(row pgx.CollectableRow) error {
	var (
		key       int64
		tenant    uuid.UUID
		recipient string
		b         quota.Booking
	)
	err := row.Scan(&key, (*[16]byte)(&tenant), &recipient, (*[16]byte)(&b.ID), &b.At)
	if d := s.of(key); d.push.Tenant == tenant && d.push.Recipient == recipient {
		d.sends = append(d.sends, b)
	}
	return err
}

func (s *situation) of(key int64) *due {
	d := s.recipients[key]
	if d == nil {
		d = &due{}
		s.recipients[key] = d
	}
	return d
}

// decide says what is to be done about one recipient's oldest due push.
func (s *situation) decide(o ClaimOrder) Claim {
	d := s.of(o.RecipientKey)
	p := d.push
	for _, f := range d.inFlight {
		if f.token == o.token { // committed by a run whose reply was lost
			return Claim{State: Claimed, Push: f.push, Token: f.token, Attempt: f.push.Attempts, StartedAt: f.leaseUntil.Add(-o.Lease), LeaseUntil: f.leaseUntil}
		}
	}
	if p.ID == uuid.Nil || len(d.inFlight) > 0 && !faults.Off(faults.InFlight) {
		return Claim{State: Nothing}
	}
	if faults.Off(faults.Delivery) {
		d.sends = nil
	}
	free, ok := o.Policy.Next(d.sends, s.now, 0)
	if !ok || free.After(p.ExpiresAt) {
		free = p.ExpiresAt // there is nothing to wait for but this
	}
	wait := max(p.NextAt.Sub(s.now), free.Sub(s.now))
	switch {
	case !s.now.Before(p.ExpiresAt):
		return Claim{State: TooLate, Push: p}
	case wait > Patience:
		p.NextAt = s.now.Add(wait)
		return Claim{State: Deferred, Push: p}
	case wait > 0:
		return Claim{State: Wait, Push: p, Wait: wait}
	}
	return Claim{State: Claimed, Push: p, Token: o.token, Attempt: p.Attempts + 1, StartedAt: s.now, LeaseUntil: s.now.Add(o.Lease)}
}
