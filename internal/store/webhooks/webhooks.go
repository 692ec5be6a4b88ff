// Package webhooks keeps webhooks and their deliveries.
package webhooks

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/webhook"
)

// Store keeps webhooks.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}

// webhookColumns are the columns of [webhook.Webhook].
const webhookColumns = `id, tenant_id, url, events, created_at, failures, coalesce(failing_since, ` + pg.NoTime + `), coalesce(disabled_at, ` + pg.NoTime + `), disabled_reason`

// CreateWebhook creates a webhook with the secret that signs its requests. It returns [webhook.ErrTooMany] if
// the tenant has the maximum number of webhooks, and the errors of [pg.DB.CheckSealing].
func (s *Store) CreateWebhook(ctx context.Context, w webhook.Webhook, secret string, most int) (webhook.Webhook, error) {
	sealed, err := s.db.Cfg.Sealer.Seal([]byte(secret), secretPlace("secret", w.Tenant, w.ID))
	if err != nil {
		return webhook.Webhook{}, err
	}
	err = s.db.Change(ctx, w.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			var others int
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, w.Tenant); err != nil { // the lock serialises creations
				return err
			}
			err := tx.QueryRow(ctx, `SELECT count(*) FROM webhooks WHERE tenant_id = $1 AND deleted_at IS NULL AND id <> $2`,
				w.Tenant, w.ID).Scan(&others)
			if err != nil {
				return err
			}
			if others >= most {
				return webhook.ErrTooMany
			}
			if err := s.db.CheckSealing(ctx, tx); err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `INSERT INTO webhooks (id, tenant_id, url, events, secret) VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO NOTHING`,
				w.ID, w.Tenant, w.URL, w.Events, sealed)
			if err != nil || tag.RowsAffected() == 0 {
				return err // an earlier run created it
			}
			d := auditlogs.Difference{}
			d.Show("host", nil, hostOf(w.URL))
			d.Show("events", nil, w.Events)
			return recordWebhook(auditlog.WebhookCreate, d)(ctx, tx, w)
		})
	})
	if err != nil {
		return webhook.Webhook{}, err
	}
	return s.Webhook(ctx, w.Tenant, w.ID)
}

// secretPlace returns the place of a webhook's secret, which its seal is bound to.
func secretPlace(column string, tenant, id uuid.UUID) seal.Cell {
	return seal.Cell{Table: "webhooks", Column: column, Row: id, Tenant: tenant}
}

// hostOf returns the host of a webhook's URL. The rest of the URL may be a secret.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Host
}

// recordWebhook returns a function that adds an action on a webhook to the audit log.
func recordWebhook(action auditlog.Action, d auditlogs.Difference) func(ctx context.Context, tx pgx.Tx, w webhook.Webhook) error {
	return func(ctx context.Context, tx pgx.Tx, w webhook.Webhook) error {
		return auditlogs.Record(ctx, tx, w.Tenant, action, w.ID.String(), d)
	}
}

// Webhook returns a tenant's webhook, or [push.ErrNotFound].
func (s *Store) Webhook(ctx context.Context, tenant, id uuid.UUID) (w webhook.Webhook, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+webhookColumns+` FROM webhooks WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL`, id, tenant)
		w, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[webhook.Webhook])
		return err
	})
	return w, err
}

// Webhooks lists a tenant's webhooks, the oldest first.
func (s *Store) Webhooks(ctx context.Context, tenant uuid.UUID) (hooks []webhook.Webhook, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+webhookColumns+` FROM webhooks WHERE tenant_id = $1 AND deleted_at IS NULL ORDER BY created_at, id`, tenant)
		hooks, err = pgx.CollectRows(rows, pgx.RowToStructByPos[webhook.Webhook])
		return err
	})
	return hooks, err
}

// DeleteWebhook deletes a webhook and its secrets. Nothing more is sent to it, and SweepDeliveries deletes its
// deliveries.
func (s *Store) DeleteWebhook(ctx context.Context, tenant, id uuid.UUID) error {
	deleted := func(ctx context.Context, tx pgx.Tx, w webhook.Webhook) error {
		d := auditlogs.Difference{}
		d.Show("host", hostOf(w.URL), nil)
		return recordWebhook(auditlog.WebhookDelete, d)(ctx, tx, w)
	}
	_, err := auditlogs.RecordOnce(ctx, s.db, tenant, pgx.RowToStructByPos[webhook.Webhook], deleted, `
		UPDATE webhooks SET deleted_at = clock_timestamp(), secret = '', old_secret = '', old_secret_until = NULL
		WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL RETURNING `+webhookColumns, id, tenant)
	return err
}

// EnableWebhook switches a webhook on again and resets its failures. Deliveries that have waited since it was
// switched off are sent.
func (s *Store) EnableWebhook(ctx context.Context, tenant, id uuid.UUID) (webhook.Webhook, error) {
	return auditlogs.RecordOnce(ctx, s.db, tenant, pgx.RowToStructByPos[webhook.Webhook], recordWebhook(auditlog.WebhookEnable, nil), `
		UPDATE webhooks SET disabled_at = NULL, disabled_reason = '', failures = 0, failing_since = NULL
		WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL RETURNING `+webhookColumns, id, tenant)
}

// RotateWebhookSecret gives a webhook a new secret. During overlap, the old one also signs requests. If the key that
// sealed the old secret is missing, the error wraps [seal.ErrOtherKey].
func (s *Store) RotateWebhookSecret(ctx context.Context, tenant, id uuid.UUID, secret string, overlap time.Duration) (w webhook.Webhook, err error) {
	place, oldPlace := secretPlace("secret", tenant, id), secretPlace("old_secret", tenant, id)
	sealed, err := s.db.Cfg.Sealer.Seal([]byte(secret), place)
	if err != nil {
		return w, err
	}
	d := auditlogs.Difference{}
	d.Show("overlap", nil, overlap.String())
	rotated := func(ctx context.Context, tx pgx.Tx, was []byte) error {
		if err := s.db.CheckSealing(ctx, tx); err != nil {
			return err
		}
		var old []byte // sealed again, because a sealed value is bound to its column
		if plain, err := s.db.Cfg.Sealer.Open(was, place); err == nil {
			old, _ = s.db.Cfg.Sealer.Seal(plain, oldPlace)
		} else if errors.Is(err, seal.ErrOtherKey) {
			return err // otherwise the old secret would be lost
		} else {
			overlap = 0 // the old secret is damaged or was deleted
		}
		rows, _ := tx.Query(ctx, `
			UPDATE webhooks SET old_secret = coalesce($3, ''::bytea), old_secret_until = clock_timestamp() + $4, secret = $2 WHERE id = $1
			RETURNING `+webhookColumns, id, sealed, old, overlap)
		if w, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[webhook.Webhook]); err != nil {
			return err
		}
		return recordWebhook(auditlog.WebhookRotateSecret, d)(ctx, tx, w)
	}
	_, err = auditlogs.RecordOnce(ctx, s.db, tenant, pgx.RowTo[[]byte], rotated,
		`SELECT secret FROM webhooks WHERE id = $1 AND tenant_id = $2 AND deleted_at IS NULL FOR NO KEY UPDATE`, id, tenant)
	return w, err
}

// WebhookBacklog counts the deliveries that are due and still wait, and the webhooks that are switched off. oldest is
// the time that the oldest of these deliveries has waited.
func (s *Store) WebhookBacklog(ctx context.Context) (deliveries int, oldest time.Duration, off int, err error) {
	err = s.db.ReadPool.QueryRow(ctx, `
		SELECT count(d.next_at), coalesce(clock_timestamp() - min(d.next_at), '0'),
			(SELECT count(*) FROM webhooks WHERE disabled_at IS NOT NULL AND deleted_at IS NULL)
		FROM webhooks w LEFT JOIN webhook_deliveries d
			ON d.webhook_id = w.id AND d.status IN ('waiting', 'sending') AND d.next_at <= statement_timestamp()
		WHERE w.disabled_at IS NULL AND w.deleted_at IS NULL`).Scan(&deliveries, &oldest, &off)
	return deliveries, oldest, off, pg.Classify(err)
}
