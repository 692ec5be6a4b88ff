package store_test

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// older is a program of the release that had no table live. Its statements are those of that release.
type older struct {
	pool   *pgxpool.Pool
	tenant uuid.UUID
}

const (
	olderInsert = `
	INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata,
		requested_send_at, send_at, next_at, expires_at, ttl_ms, bulk, request_id, created_at, updated_at)
	SELECT $1, $2, $3, $4, 'log', '', '', '{}'::json, NULL, $5, $5, $5, $6, 0, $7, '', $8, $8`

	olderClaim = `
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
	)
	SELECT id FROM changed`

	olderFlag = `UPDATE pushes p SET more_due = true FROM unnest($1::uuid[]) AS n (id) WHERE p.id = n.id AND p.status = 'sending' RETURNING p.id`

	olderFinish = `
	WITH n AS MATERIALIZED (
		SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bool[], $8::text[], $9::bigint[], $10::text[], $11::bigint[])
			AS n (id, token, attempt, outcome, provider_message_id, error, reaped, status, delay_us, reason, handed_us)
	), ended AS (
		UPDATE pushes p SET
			status = CASE WHEN d.delivered THEN 'sent' ELSE n.status END, gen = p.gen + 1, claim_token = NULL, lease_until = NULL,
			next_at = CASE WHEN n.status = 'scheduled' THEN clock_timestamp() + n.delay_us * interval '1 microsecond' ELSE p.next_at END,
			last_error = CASE WHEN d.delivered THEN '' ELSE n.reason END, possibly_delivered = p.possibly_delivered OR n.outcome = 'unknown', updated_at = clock_timestamp()
		FROM n CROSS JOIN LATERAL (
			SELECT n.status <> 'sent' AND EXISTS (SELECT FROM sends s WHERE s.push_id = n.id AND s.outcome = 'delivered') AS delivered
		) d
		WHERE p.id = n.id AND p.claim_token = n.token AND p.status = 'sending'
		RETURNING p.id, p.more_due, p.recipient_key, p.status
	), late AS (
		UPDATE pushes p SET status = 'sent', gen = p.gen + 1, last_error = '', updated_at = clock_timestamp()
		FROM n WHERE p.id = n.id AND p.status = 'scheduled' AND n.outcome = 'delivered'
		RETURNING p.id
	), recorded AS (
		UPDATE sends s SET
			ended_at = coalesce(s.ended_at, CASE WHEN n.reaped THEN s.lease_until ELSE clock_timestamp() END),
			handed_at = CASE WHEN n.handed_us > 0 AND n.outcome = 'delivered' THEN least(s.started_at + n.handed_us * interval '1 microsecond', clock_timestamp()) END,
			outcome = n.outcome, provider_message_id = n.provider_message_id, error = n.error
		FROM n WHERE s.push_id = n.id AND s.attempt = n.attempt
			AND (n.outcome = 'delivered' OR s.ended_at IS NULL AND EXISTS (SELECT FROM ended WHERE ended.id = n.id))
	)
	SELECT id, more_due FROM ended UNION ALL SELECT id, false FROM late`

	olderCancel = `UPDATE pushes SET status = 'canceled', gen = gen + 1, updated_at = clock_timestamp() WHERE id = $1 AND tenant_id = $2 AND status = 'scheduled'`

	olderMove = `
	UPDATE pushes SET send_at = $2, next_at = $2, requested_send_at = $3, expires_at = $4,
		gen = $5, bulk = $6, updated_at = clock_timestamp()
	WHERE id = $1`

	olderExpire = `
	WITH late AS MATERIALIZED (
		SELECT id FROM pushes
		WHERE status || '.' = 'scheduled.' AND channel = 'log' AND next_at <= statement_timestamp() AND expires_at <= statement_timestamp()
		ORDER BY next_at LIMIT $1 FOR UPDATE SKIP LOCKED
	)
	UPDATE pushes p SET status = 'expired', gen = gen + 1, updated_at = clock_timestamp(),
		last_error = concat_ws(': ', 'it expired before it could be sent', nullif(last_error, ''))
	FROM late WHERE p.id = late.id`

	olderLost = `
	SELECT p.id, p.claim_token, s.attempt
	FROM sends s JOIN pushes p ON p.id = s.push_id
	WHERE s.ended_at IS NULL AND s.lease_until < statement_timestamp() AND p.status = 'sending'
	LIMIT $1`
)

// attemptOf is an attempt that a program has claimed.
type attemptOf struct {
	push, token uuid.UUID
	number      int
	newer       booking.Attempt // as programs of this release name it
}

// inTx runs work in a transaction, again if it met another one.
func (o older) inTx(ctx context.Context, work func(tx pgx.Tx) error) error {
	for {
		err := pgx.BeginFunc(ctx, o.pool, work)
		if pgErr, ok := errors.AsType[*pgconn.PgError](err); !ok || pgErr.Code != "40P01" {
			return err
		}
	}
}

func (o older) book(ctx context.Context, recipient string, at, expires time.Time) (id uuid.UUID, err error) {
	id = uuid.Must(uuid.NewV7())
	key := push.RecipientKey(o.tenant, recipient)
	return id, o.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, olderInsert, id, o.tenant, key, recipient, at, expires, id[15]%2 == 0, time.Now())
		return err
	})
}

// claim takes what is due for a recipient.
func (o older) claim(ctx context.Context, recipient string, lease time.Duration) (a attemptOf, err error) {
	key := push.RecipientKey(o.tenant, recipient)
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		a = attemptOf{}
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, key); err != nil {
			return err
		}
		var (
			due          uuid.UUID
			gen          int64
			attempts     int
			next, now    time.Time
			expires      time.Time
			under, taken []uuid.UUID
		)
		err := tx.QueryRow(ctx, `
			SELECT id, gen, attempts, next_at, expires_at FROM pushes
			WHERE recipient_key = $1 AND status = 'scheduled' AND send_at <= statement_timestamp() AND next_at <= statement_timestamp()
			ORDER BY greatest(next_at, statement_timestamp()), send_at, id LIMIT 1`, key).Scan(&due, &gen, &attempts, &next, &expires)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			err = tx.QueryRow(ctx, `SELECT array_agg(id), clock_timestamp() FROM pushes WHERE recipient_key = $1 AND status = 'sending'`, key).Scan(&under, &now)
		}
		if err != nil {
			return err
		}
		if len(under) > 0 {
			_, err := tx.Exec(ctx, olderFlag, under)
			return err
		}
		token, until, status := new(uuid.New()), new(now.Add(lease)), push.Sending
		if !now.Before(expires) {
			token, until, status = nil, nil, push.Expired
		}
		rows, _ := tx.Query(ctx, olderClaim, []uuid.UUID{due}, []int64{gen}, []string{string(status)}, []time.Time{next}, []*uuid.UUID{token}, []*time.Time{until}, []bool{false}, now)
		if taken, err = pgx.CollectRows(rows, pgx.RowTo[uuid.UUID]); len(taken) > 0 && token != nil {
			a = attemptOf{push: due, token: *token, number: attempts + 1}
		}
		return err
	})
	return a, err
}

func (o older) finish(ctx context.Context, a attemptOf, outcome push.Outcome, status push.Status, reaped bool) (ended bool, err error) {
	reason := ""
	if status != push.Sent {
		reason = "the reason"
	}
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		rows, _ := tx.Query(ctx, olderFinish, []uuid.UUID{a.push}, []uuid.UUID{a.token}, []int{a.number}, []string{string(outcome)}, []string{""}, []string{reason}, []bool{reaped},
			[]string{string(status)}, []int64{0}, []string{reason}, []int64{0})
		done, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (id uuid.UUID, err error) { return id, row.Scan(&id, new(bool)) })
		ended = len(done) > 0
		return err
	})
	return ended, err
}

// cancel reports whether the push is canceled.
func (o older) cancel(ctx context.Context, id uuid.UUID) (canceled bool, err error) {
	err = o.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, olderCancel, id, o.tenant); err != nil {
			return err
		}
		return tx.QueryRow(ctx, `SELECT status = 'canceled' FROM pushes WHERE id = $1`, id).Scan(&canceled)
	})
	return canceled, err
}

func (o older) move(ctx context.Context, id uuid.UUID, recipient string, to time.Time) error {
	return o.inTx(ctx, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1)`, push.RecipientKey(o.tenant, recipient)); err != nil {
			return err
		}
		var (
			gen    int64
			status string
		)
		err := tx.QueryRow(ctx, `SELECT gen, status FROM pushes WHERE id = $1 FOR UPDATE`, id).Scan(&gen, &status)
		if err == nil && status == "scheduled" {
			_, err = tx.Exec(ctx, olderMove, id, to, to, to.Add(time.Hour), gen+1, false)
		}
		return err
	})
}

func (o older) expire(ctx context.Context) error {
	return o.inTx(ctx, func(tx pgx.Tx) error { _, err := tx.Exec(ctx, olderExpire, 100); return err })
}

// reap ends lost attempts, whoever has begun them.
func (o older) reap(ctx context.Context) error {
	rows, _ := o.pool.Query(ctx, olderLost, 100)
	lost, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a attemptOf, err error) {
		return a, row.Scan(&a.push, &a.token, &a.number)
	})
	for _, a := range lost {
		if err == nil {
			_, err = o.finish(ctx, a, push.Unknown, push.Scheduled, true)
		}
	}
	return err
}
