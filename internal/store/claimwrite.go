package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// claimSQL changes pushes that are still as they were read, and opens an attempt for those that are now being sent.
const claimSQL = `
	WITH changed AS (
		UPDATE pushes p SET
			status = n.status, next_at = n.next_at, updated_at = $8, more_due = n.more,
			gen = p.gen + CASE WHEN n.status = 'sending' THEN 0 ELSE 1 END,
			attempts = p.attempts + CASE WHEN n.status = 'sending' THEN 1 ELSE 0 END,
			claim_token = n.token, lease_until = n.lease_until,
			last_error = CASE WHEN n.status = 'expired' THEN 'it expired before it could be sent' ELSE p.last_error END
		FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::timestamptz[], $5::uuid[], $6::timestamptz[], $7::bool[])
			AS n (id, gen, status, next_at, token, lease_until, more)
		WHERE p.id = n.id AND p.gen = n.gen AND p.status = 'scheduled'
		RETURNING p.*
	), opened AS (
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until)
		SELECT id, attempts, tenant_id, recipient_key, recipient, channel, $8, lease_until FROM changed WHERE status = 'sending'
	), fewer AS (` + fewerSQL + `(SELECT recipient_key FROM changed WHERE status = 'expired'))
	SELECT id FROM changed`

// flagSQL tells attempts under way that another push of the recipient waits.
const flagSQL = `
	UPDATE pushes p SET more_due = true FROM unnest($1::uuid[]) AS n (id)
	WHERE p.id = n.id AND p.status = 'sending'
	RETURNING p.id`

// claimWrite gathers what a group of claims changes, one array per column.
type claimWrite struct {
	now    time.Time
	ids    [][16]byte
	gens   []int64
	states []string
	nextAt []time.Time
	tokens []*[16]byte
	leases []*time.Time
	more   []bool
	busy   [][16]byte
	claims map[uuid.UUID]int // which claim a push or an attempt under way belongs to
}

func newClaimWrite(now time.Time) *claimWrite {
	return &claimWrite{now: now, claims: map[uuid.UUID]int{}}
}

// add notes what the i-th claim changes.
func (w *claimWrite) add(i int, c booking.Claim, d *booking.ClaimState) {
	var (
		token *[16]byte
		lease *time.Time
	)
	status := push.Scheduled
	switch c.Outcome {
	case booking.Nothing:
		for _, f := range d.InFlight {
			if d.Due.ID != uuid.Nil {
				w.busy = append(w.busy, f.Push.ID)
				w.claims[f.Push.ID] = i
			}
		}
		return
	case booking.Wait, booking.Again:
		return
	case booking.TooLate:
		status = push.Expired
	case booking.Claimed:
		if c.Repeated {
			return
		}
		status, token, lease = push.Sending, (*[16]byte)(&c.Token), &c.LeaseUntil
	}
	w.ids = append(w.ids, c.Push.ID)
	w.gens = append(w.gens, c.Push.Gen)
	w.states = append(w.states, string(status))
	w.nextAt = append(w.nextAt, c.Push.NextAt)
	w.tokens = append(w.tokens, token)
	w.leases = append(w.leases, lease)
	w.more = append(w.more, c.Outcome == booking.Claimed && d.More)
	w.claims[c.Push.ID] = i
}

// commit writes the changes and commits. Cancels, moves and finishes do not take the recipient's lock; the claims that
// they overtook become [booking.Again].
func (w *claimWrite) commit(ctx context.Context, c *pgxpool.Conn, claims []booking.Claim) error {
	b := &pgx.Batch{}
	if len(w.ids) > 0 {
		b.Queue(claimSQL, w.ids, w.gens, w.states, w.nextAt, w.tokens, w.leases, w.more, w.now)
	}
	if len(w.busy) > 0 {
		slices.SortFunc(w.busy, func(a, b [16]byte) int { return bytes.Compare(a[:], b[:]) }) // as finishes lock them
		b.Queue(flagSQL, w.busy)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.ClaimCommitting)
	for range b.Len() - 1 {
		rows, _ := res.Query()
		written, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err != nil {
			_ = res.Close()
			return err
		}
		for _, id := range written {
			delete(w.claims, id)
		}
	}
	if err := res.Close(); err != nil {
		return err
	}
	for _, i := range w.claims {
		claims[i] = booking.Claim{Outcome: booking.Again}
	}
	return nil
}
