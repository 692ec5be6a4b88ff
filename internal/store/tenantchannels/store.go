// Package tenantchannels keeps the channels that tenants make, with sealed secrets.
package tenantchannels

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/tenantchannel"
)

// Store keeps channels of tenants.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store { return &Store{db: db} }

const columns = `c.id, c.tenant_id, c.name, c.type, c.settings, c.secret, c.secret_times, c.disabled, c.deleting_at IS NOT NULL, c.cancels, c.canceled, c.version, c.created_at, c.updated_at`

// scan reads a row of columns. It opens the secrets, unless no key does.
func (s *Store) scan(row pgx.CollectableRow) (c tenantchannel.Channel, err error) {
	var sealed, times []byte
	err = row.Scan(&c.ID, &c.Tenant, &c.Name, &c.Type, &c.Settings, &sealed, &times, &c.Disabled, &c.Deleting, &c.Cancels, &c.Canceled, &c.Version, &c.CreatedAt, &c.UpdatedAt)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(times, &c.SecretAt); err != nil {
		return c, err
	}
	if len(sealed) == 0 {
		return c, nil
	}
	plain, err := s.db.Cfg.Sealer.Open(sealed, cell(c.Tenant, c.ID))
	if err != nil {
		c.Fault = err
		return c, nil
	}
	return c, json.Unmarshal(plain, &c.Secrets)
}

// cell returns the place of a channel's secrets, which their seal is bound to.
func cell(tenant, id uuid.UUID) seal.Cell {
	return seal.Cell{Table: "tenant_channels", Column: "secret", Row: id, Tenant: tenant}
}

// OwnChannels returns a tenant's channels, the oldest first.
func (s *Store) OwnChannels(ctx context.Context, tenant uuid.UUID) (own tenantchannel.Own, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		own, err = s.ownChannels(ctx, c, tenant)
		return err
	})
	return own, err
}

// KnownChannels is [Store.OwnChannels] for a worker, whose reads are not the tenant's.
func (s *Store) KnownChannels(ctx context.Context, tenant uuid.UUID) (own tenantchannel.Own, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		own, err = s.ownChannels(ctx, c, tenant)
		return err
	})
	return own, pg.Classify(err)
}

// batcher sends queries.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func (s *Store) ownChannels(ctx context.Context, c batcher, tenant uuid.UUID) (own tenantchannel.Own, err error) {
	own.Tenant = tenant
	b := &pgx.Batch{}
	b.Queue(`SELECT name, channels_version FROM tenants WHERE id = $1`, tenant).QueryRow(func(row pgx.Row) error {
		return row.Scan(&own.Name, &own.Version)
	})
	b.Queue(`SELECT `+columns+` FROM tenant_channels c WHERE c.tenant_id = $1 ORDER BY c.created_at, c.id`, tenant).Query(func(rows pgx.Rows) error {
		own.Channels, err = pgx.CollectRows(rows, s.scan)
		return err
	})
	return own, c.SendBatch(ctx, b).Close()
}

// ChannelChanges returns the tenants whose channels have changed since a version, and the latest version.
func (s *Store) ChannelChanges(ctx context.Context, since int64) (tenants []uuid.UUID, latest int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	rows, _ := s.db.Pool.Query(ctx, `
		SELECT c.version, t.id FROM channel_changes c LEFT JOIN tenants t ON t.channels_version > $1 AND t.channels_version > 0 AND c.version > $1`, since)
	var id *uuid.UUID
	_, err = pgx.ForEachRow(rows, []any{&latest, &id}, func() error {
		if id != nil {
			tenants = append(tenants, *id)
		}
		return nil
	})
	return tenants, latest, pg.Classify(err)
}

// secretTimes returns when each secret was set: now for a new text, as before for the same one.
func secretTimes(was tenantchannel.Channel, is map[string]string, now time.Time) map[string]time.Time {
	times := map[string]time.Time{}
	for name, text := range is {
		if old, known := was.Secrets[name]; known && old == text {
			times[name] = was.SecretAt[name]
		} else {
			times[name] = now
		}
	}
	return times
}
