package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// The statements below find their rows by the index pushes_due, and so repeat its condition. They compare with
// statement_timestamp(), because clock_timestamp() is volatile: every row would be looked at.

// Promote hands up to limit pushes that are due within the horizon, and not believed to be in the queue, to arm, but
// for those of some sources that are due already, and marks them as armed for the arm lease once it has succeeded. It
// returns how many there were. One caller works at a time, the others get 0; no push is locked while arm waits for its
// queue.
func (s *Store) Promote(ctx context.Context, horizon, armLease time.Duration, limit int, without []push.TenantChannel, arm func([]push.WakeUp) error) (int, error) {
	var (
		wakeUps []push.WakeUp
		armErr  error
	)
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var err error
			if wakeUps, err = s.toArm(ctx, tx, horizon, limit, without); err != nil || len(wakeUps) == 0 {
				return err
			}
			if armErr = arm(wakeUps); armErr != nil {
				return errNotArmed // the queue's trouble is no reason to run the transaction again
			}
			failpoint.Hit(failpoint.PromoteArmed)
			return markArmed(ctx, tx, armLease, wakeUps)
		})
	})
	if armErr != nil {
		return 0, armErr
	}
	if err != nil {
		return 0, fmt.Errorf("promote: %w", err)
	}
	return len(wakeUps), nil
}

// toArm returns the pushes to be armed, or none while another caller promotes.
func (s *Store) toArm(ctx context.Context, tx pgx.Tx, horizon time.Duration, limit int, without []push.TenantChannel) ([]push.WakeUp, error) {
	var first bool
	if err := tx.QueryRow(ctx, `SELECT pg_try_advisory_xact_lock($1, 0)`, promoting).Scan(&first); err != nil || !first {
		return nil, err
	}
	rows, _ := tx.Query(ctx, `
		SELECT id, tenant_id, gen, recipient_key, channel, next_at, next_at - clock_timestamp(), armed_until IS NOT NULL FROM pushes p
		WHERE status || '' = 'scheduled' AND next_at < statement_timestamp() + $1
			AND (armed_until IS NULL OR armed_until < statement_timestamp())
			AND (next_at > statement_timestamp() OR `+notOf("$3", "$4")+`) AND ($5::text[] IS NULL OR channel = ANY ($5))
		ORDER BY next_at LIMIT $2`, horizon, limit, tenantsOf(without), channelsOf(without), s.cfg.Channels)
	return pgx.CollectRows(rows, scanWakeUp)
}

// notOf is the condition that a push p is of none of the sources in two arrays.
func notOf(tenants, channels string) string {
	return `NOT EXISTS (SELECT FROM unnest(` + tenants + `::uuid[], ` + channels + `::text[]) AS w (tenant_id, channel) WHERE w.tenant_id = p.tenant_id AND w.channel = p.channel)`
}

func tenantsOf(sources []push.TenantChannel) [][16]byte {
	tenants := make([][16]byte, len(sources))
	for i, s := range sources {
		tenants[i] = s.Tenant
	}
	return tenants
}

func channelsOf(sources []push.TenantChannel) []string {
	channels := make([]string, len(sources))
	for i, s := range sources {
		channels[i] = s.Channel
	}
	return channels
}

// promoting is the lock of the caller that promotes. Locks of two numbers are apart from those of recipients, which
// have one.
const promoting = 1

// markArmed marks what has been armed, but for pushes that have changed, or are just being changed: those are armed
// again if need be.
func markArmed(ctx context.Context, tx pgx.Tx, armLease time.Duration, wakeUps []push.WakeUp) error {
	ids, gens := make([][16]byte, len(wakeUps)), make([]int64, len(wakeUps))
	for i, w := range wakeUps {
		ids[i], gens[i] = w.Push, w.Gen
	}
	_, err := tx.Exec(ctx, `
		WITH armed AS MATERIALIZED (
			SELECT p.id FROM unnest($1::uuid[], $2::bigint[]) AS n (id, gen) JOIN pushes p ON p.id = n.id
			WHERE p.gen = n.gen AND p.status = 'scheduled' FOR UPDATE OF p SKIP LOCKED)
		UPDATE pushes p SET armed_until = clock_timestamp() + $3 FROM armed WHERE p.id = armed.id`, ids, gens, armLease)
	return err
}

var errNotArmed = errors.New("not armed")

func scanWakeUp(row pgx.CollectableRow) (push.WakeUp, error) {
	var w push.WakeUp
	err := row.Scan((*[16]byte)(&w.Push), (*[16]byte)(&w.Tenant), &w.Gen, &w.RecipientKey, &w.Channel, &w.At, &w.In, &w.Again)
	return w, err
}

// Unarm has the promoter arm the pushes of recipients again, because the worker that was woken will not send them.
func (s *Store) Unarm(ctx context.Context, recipientKeys []int64) error {
	return s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			UPDATE pushes SET armed_until = NULL WHERE id IN (
				SELECT id FROM pushes
				WHERE recipient_key = ANY ($1::bigint[]) AND status = 'scheduled' AND armed_until IS NOT NULL
				OFFSET 0) AND status = 'scheduled'`, recipientKeys)
		return err
	})
}

// Due returns wake-ups for up to limit pushes that have been due for so long, the oldest first, but for those of some
// sources: what is polled, since nothing wakes a worker for it.
func (s *Store) Due(ctx context.Context, limit int, since time.Duration, without []push.TenantChannel) ([]push.WakeUp, error) {
	return collect(ctx, s, scanWakeUp, `
		SELECT id, tenant_id, gen, recipient_key, channel, next_at, interval '0', false FROM pushes p
		WHERE status || '' = 'scheduled' AND next_at <= statement_timestamp() - $4::interval AND `+notOf("$2", "$3")+`
			AND ($5::text[] IS NULL OR channel = ANY ($5))
		ORDER BY next_at LIMIT $1`, limit, tenantsOf(without), channelsOf(without), since, s.cfg.Channels)
}

// Expire ends up to limit pushes whose expiry has passed while they waited, and returns them.
func (s *Store) Expire(ctx context.Context, limit int) ([]booking.Ended, error) {
	var ended []booking.Ended
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows, _ := c.Query(ctx, `
			WITH late AS MATERIALIZED (
				SELECT id FROM pushes
				WHERE status || '' = 'scheduled' AND next_at <= statement_timestamp() AND expires_at <= statement_timestamp()
				ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED
			), ended AS (
				UPDATE pushes p SET status = 'expired', gen = gen + 1, armed_until = NULL, updated_at = clock_timestamp(),
					last_error = concat_ws(': ', 'it expired before it could be sent',
						CASE WHEN channel <> ALL ($2::text[]) THEN 'its channel is not configured any more' ELSE nullif(last_error, '') END)
				FROM late WHERE p.id = late.id
				RETURNING p.id, p.tenant_id, p.recipient, p.request_id, p.recipient_key
			), fewer AS (`+fewerSQL+`(SELECT recipient_key FROM ended))
			SELECT id, tenant_id, recipient, request_id FROM ended`, limit, s.cfg.Channels)
		var err error
		ended, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e booking.Ended, err error) {
			err = row.Scan((*[16]byte)(&e.ID), (*[16]byte)(&e.Tenant), &e.Recipient, &e.RequestID)
			return e, err
		})
		return err
	})
	return ended, err
}

// Backlog counts the pushes that are due and still wait, and says for how long the oldest has.
func (s *Store) Backlog(ctx context.Context) (pushes int, oldest time.Duration, err error) {
	err = s.readPool.QueryRow(ctx, `
		SELECT count(*), coalesce(clock_timestamp() - min(next_at), '0')
		FROM pushes WHERE status || '' = 'scheduled' AND next_at <= statement_timestamp()`).Scan(&pushes, &oldest)
	return pushes, oldest, classify(err)
}
