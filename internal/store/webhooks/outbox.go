package webhooks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/webhook"
)

// Outgoing is a claimed delivery, with everything that is needed to send it.
type Outgoing struct {
	ID        uuid.UUID
	Webhook   uuid.UUID
	Tenant    uuid.UUID
	Attempt   int // 1, 2, …
	Payload   []byte
	URL       string
	Secret    string `db:"-"`
	OldSecret string `db:"-"` // the previous secret, which also signs; empty if there is none
	Unsigned  error  `db:"-"` // why the secrets could not be opened; nil if they were
}

// sealedOutgoing is an [Outgoing] as it is stored. Old is empty if there is no old secret, or its overlap has ended.
type sealedOutgoing struct {
	Outgoing
	Sealed, Old []byte
}

// open returns a delivery with its secrets opened.
func (s *Store) open(d sealedOutgoing) Outgoing {
	for _, one := range []struct {
		column string
		sealed []byte
		to     *string
	}{{"secret", d.Sealed, &d.Secret}, {"old_secret", d.Old, &d.OldSecret}} {
		if len(one.sealed) == 0 {
			continue
		}
		plain, err := s.db.Cfg.Sealer.Open(one.sealed, secretPlace(one.column, d.Tenant, d.Webhook))
		if err != nil {
			d.Unsigned = err
		}
		*one.to = string(plain)
	}
	if len(d.Sealed) == 0 {
		d.Unsigned = errNoSecret
	}
	return d.Outgoing
}

// errNoSecret reports that the secret was deleted: see [pg.DB.ForgetSecrets].
var errNoSecret = errors.New("the webhook has no secret")

// ClaimLimits limits a claim of due deliveries.
type ClaimLimits struct {
	Webhooks   int           // the maximum number of webhooks
	PerWebhook int           // the maximum per webhook, including deliveries under way anywhere; 1 if it is failing
	Lease      time.Duration // the time after which an attempt counts as lost
}

// OpenWebhooksSQL is the table open, for WITH RECURSIVE: for each webhook, the time of its earliest delivery that has
// not ended. It steps from webhook to webhook along the index, so that a long backlog costs no more than a short one.
const OpenWebhooksSQL = `open (webhook_id, next_at) AS (
		(SELECT webhook_id, next_at FROM webhook_deliveries WHERE status IN ('waiting', 'sending') ORDER BY webhook_id, next_at LIMIT 1)
		UNION ALL
		SELECT n.webhook_id, n.next_at FROM open o CROSS JOIN LATERAL (
			SELECT d.webhook_id, d.next_at FROM webhook_deliveries d
			WHERE d.status IN ('waiting', 'sending') AND d.webhook_id > o.webhook_id ORDER BY d.webhook_id, d.next_at LIMIT 1) n
	)`

// dueWebhooksSQL locks webhooks that have a due delivery and may send more now, the longest waiting first. It skips
// webhooks that another worker has locked.
const dueWebhooksSQL = `
	WITH RECURSIVE ` + OpenWebhooksSQL + `
	SELECT w.id FROM open o JOIN webhooks w ON w.id = o.webhook_id
	WHERE o.next_at <= statement_timestamp() AND coalesce(w.disabled_at, w.deleted_at) IS NULL
		AND (SELECT count(*) FILTER (WHERE d.next_at > statement_timestamp()) FROM webhook_deliveries d WHERE d.webhook_id = w.id AND d.status || '' = 'sending')
			< CASE WHEN w.failing_since IS NULL THEN $2 ELSE 1 END
	ORDER BY o.next_at LIMIT $1
	FOR NO KEY UPDATE OF w SKIP LOCKED`

// claimDeliveriesSQL claims due deliveries of locked webhooks. A delivery waits for an earlier event of the same
// push: it is put off until the earlier one is next tried, and settling that one makes it due. The query reads more
// rows than it can claim, so that put-off deliveries do not block others.
const claimDeliveriesSQL = `
	WITH due AS MATERIALIZED (
		SELECT d.id, before.next_at AS waits_for,
			CASE WHEN w.failing_since IS NULL THEN $2 ELSE 1 END - busy.n AS room,
			row_number() OVER (PARTITION BY w.id, before.next_at IS NULL ORDER BY d.next_at, d.seq) AS place
		FROM unnest($1::uuid[]) AS k (id) JOIN webhooks w ON w.id = k.id
		CROSS JOIN LATERAL (
			SELECT count(*) FILTER (WHERE d.next_at > statement_timestamp()) AS n FROM webhook_deliveries d
			WHERE d.webhook_id = w.id AND d.status || '' = 'sending') busy
		CROSS JOIN LATERAL (
			SELECT id, push_id, seq, next_at FROM webhook_deliveries d
			WHERE d.webhook_id = w.id AND d.status IN ('waiting', 'sending') AND d.next_at <= statement_timestamp()
			ORDER BY d.next_at LIMIT 50) d
		LEFT JOIN LATERAL (
			SELECT b.next_at FROM webhook_deliveries b
			WHERE b.webhook_id = w.id AND b.push_id = d.push_id AND b.seq < d.seq AND b.status IN ('waiting', 'sending')
			ORDER BY b.seq DESC LIMIT 1) before ON true
	), changed AS (
		UPDATE webhook_deliveries d SET
			status = CASE WHEN due.waits_for IS NULL THEN 'sending' ELSE 'waiting' END,
			attempts = d.attempts + CASE WHEN due.waits_for IS NULL THEN 1 ELSE 0 END,
			next_at = greatest(due.waits_for, statement_timestamp() + $3)
		FROM due WHERE d.id = due.id AND (due.waits_for IS NOT NULL OR due.place <= due.room)
		RETURNING d.*
	)
	SELECT d.id, w.id, d.tenant_id, d.attempts, d.payload, w.url, w.secret,
		CASE WHEN w.old_secret_until > statement_timestamp() THEN w.old_secret ELSE '' END
	FROM changed d JOIN webhooks w ON w.id = d.webhook_id
	WHERE d.status = 'sending' ORDER BY d.seq`

// ClaimDeliveries claims due deliveries in the order of their events. An event waits for earlier events of the same
// webhook and push. more reports whether to call ClaimDeliveries again at once.
func (s *Store) ClaimDeliveries(ctx context.Context, o ClaimLimits) (claimed []Outgoing, more bool, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		claimed, more = nil, false // claims of an earlier run become due again when their lease ends
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, dueWebhooksSQL, o.Webhooks, o.PerWebhook)
			hooks, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil || len(hooks) == 0 {
				return err
			}
			more = true
			rows, _ = tx.Query(ctx, claimDeliveriesSQL, hooks, o.PerWebhook, o.Lease)
			sealed, err := pgx.CollectRows(rows, pgx.RowToStructByPos[sealedOutgoing])
			for _, d := range sealed {
				claimed = append(claimed, s.open(d))
			}
			return err
		})
	})
	return claimed, more, err
}

// Settlement is the result of an attempt to deliver.
type Settlement struct {
	ID        uuid.UUID
	Webhook   uuid.UUID
	Attempt   int
	Delivered bool
	GaveUp    bool          // not delivered, and not to be retried
	Retry     time.Duration // the pause before the next attempt, if there is one
	Gone      bool          // the endpoint answered 410 Gone: switch the webhook off
	Status    int           // the HTTP status; 0 if there was no response
	Error     string
}

// DisableLimits holds the two limits that a failing endpoint must reach before its webhook is switched off.
type DisableLimits struct {
	After    time.Duration // the time since the first failure
	Failures int           // the number of failures in a row
}

// settleDeliveriesSQL ends attempts. A success counts even if the attempt has lost its lease. A failure counts only
// for the current attempt.
const settleDeliveriesSQL = `
	UPDATE webhook_deliveries d SET
		status = n.status, last_status = n.code, last_error = n.error,
		next_at = statement_timestamp() + n.retry_us * interval '1 microsecond',
		ended_at = CASE WHEN n.status <> 'waiting' THEN statement_timestamp() END
	FROM unnest($1::uuid[], $2::int[], $3::text[], $4::bigint[], $5::int[], $6::text[]) AS n (id, attempt, status, retry_us, code, error)
	WHERE d.id = n.id AND d.status IN ('waiting', 'sending') AND (n.status = 'delivered' OR d.status = 'sending' AND d.attempts = n.attempt)`

// nextInLineSQL makes the events due that waited for the deliveries that have just ended.
const nextInLineSQL = `
	UPDATE webhook_deliveries SET next_at = statement_timestamp() WHERE id IN (
		SELECT n.id FROM webhook_deliveries d
		CROSS JOIN LATERAL (
			SELECT id FROM webhook_deliveries n
			WHERE n.webhook_id = d.webhook_id AND n.push_id = d.push_id AND n.status IN ('waiting', 'sending')
			ORDER BY n.seq LIMIT 1) n
		WHERE d.id = ANY ($1::uuid[]) AND d.ended_at IS NOT NULL)
	AND status = 'waiting'`

// healthSQL records the results of each webhook's attempts, and switches off webhooks that failed for too long. One
// success outweighs the failures in the same batch. A late failure that ended no attempt is ignored.
const healthSQL = `
	WITH n AS (
		SELECT n.id, bool_or(n.delivered) AS well, bool_or(n.gone) AS gone, count(*) AS failures
		FROM unnest($1::uuid[], $2::bool[], $3::bool[], $6::uuid[], $7::int[], $8::text[]) AS n (id, delivered, gone, delivery, attempt, status)
		JOIN webhook_deliveries d ON d.id = n.delivery AND (n.delivered OR d.attempts = n.attempt AND d.status = n.status)
		GROUP BY n.id
	), decided AS (
		SELECT w.id, n.well, w.failures + n.failures AS failures, coalesce(w.failing_since, statement_timestamp()) AS since, CASE
			WHEN n.gone THEN 'the endpoint answered 410 Gone'
			WHEN NOT n.well AND w.failures + n.failures >= $5 AND w.failing_since <= statement_timestamp() - $4::interval
				THEN format('%s attempts in a row have failed, since %s', w.failures + n.failures, utc(date_trunc('second', w.failing_since)))
		END AS why
		FROM n JOIN webhooks w ON w.id = n.id
		WHERE NOT n.well OR n.gone OR w.failing_since IS NOT NULL
	)
	UPDATE webhooks w SET
		failures = CASE WHEN j.well THEN 0 ELSE j.failures END,
		failing_since = CASE WHEN NOT j.well THEN j.since END,
		disabled_at = coalesce(w.disabled_at, CASE WHEN j.why IS NOT NULL THEN statement_timestamp() END),
		disabled_reason = CASE WHEN w.disabled_at IS NULL AND j.why IS NOT NULL THEN j.why ELSE w.disabled_reason END
	FROM decided j WHERE w.id = j.id
	RETURNING w.id, w.tenant_id, w.url, w.events, w.created_at, w.failures, coalesce(w.failing_since, ` + pg.NoTime + `),
		CASE WHEN w.disabled_at = statement_timestamp() THEN w.disabled_at ELSE ` + pg.NoTime + ` END, w.disabled_reason`

// SettleDeliveries ends attempts, and returns the webhooks that it switched off because of them.
func (s *Store) SettleDeliveries(ctx context.Context, settlements []Settlement, off DisableLimits) ([]webhook.Webhook, error) {
	var switchedOff []webhook.Webhook
	a := settleArgs(settlements)
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			b := &pgx.Batch{}
			// Claims take the same lock, so that a concurrent claim sees either all of these changes or none.
			b.Queue(`SELECT count(*) FROM (SELECT FROM webhooks WHERE id = ANY ($1::uuid[]) ORDER BY id FOR NO KEY UPDATE) locked`, a.hooks)
			b.Queue(settleDeliveriesSQL, a.ids, a.attempts, a.statuses, a.retries, a.codes, a.errors)
			b.Queue(nextInLineSQL, a.ids)
			b.Queue(healthSQL, a.hooks, a.delivered, a.gone, off.After, off.Failures, a.ids, a.attempts, a.statuses)
			res := tx.SendBatch(ctx, b)
			defer res.Close()
			for range 3 {
				if _, err := res.Exec(); err != nil {
					return err
				}
			}
			rows, _ := res.Query()
			touched, err := pgx.CollectRows(rows, pgx.RowToStructByPos[webhook.Webhook])
			switchedOff = slices.DeleteFunc(touched, func(w webhook.Webhook) bool { return w.DisabledAt.IsZero() })
			return err
		})
	})
	return switchedOff, err
}

// settleColumns are settlements as one array per column.
type settleColumns struct {
	ids, hooks       []uuid.UUID
	attempts, codes  []int32
	statuses, errors []string
	retries          []int64
	delivered, gone  []bool
}

func settleArgs(settlements []Settlement) settleColumns {
	var a settleColumns
	for _, n := range settlements {
		status := "waiting"
		switch {
		case n.Delivered:
			status = "delivered"
		case n.GaveUp:
			status = "failed"
		}
		a.ids, a.hooks = append(a.ids, n.ID), append(a.hooks, n.Webhook)
		a.attempts, a.codes = append(a.attempts, int32(n.Attempt)), append(a.codes, int32(n.Status))
		a.statuses, a.errors = append(a.statuses, status), append(a.errors, n.Error)
		a.retries = append(a.retries, n.Retry.Microseconds())
		a.delivered, a.gone = append(a.delivered, n.Delivered), append(a.gone, n.Gone)
	}
	return a
}
