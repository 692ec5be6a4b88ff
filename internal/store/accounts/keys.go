package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/sendquota/sendquota/internal/store/auditlog"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// endedKeysKept is how many of a tenant's API keys that have ended stay in its list.
const endedKeysKept = 1000

const keyColumns = `k.id, t.name, k.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, ` + keyState + `, coalesce(k.successor, ` + pg.NoID + `)`

const keyState = `CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'live' END`

// CreateKey makes an API key of a tenant and returns it, with its secret: "sq_" and 256 random bits in base64. Only its
// SHA-256 is stored. A key that makes another one gives it no scope that it lacks, and no later end than its own, which is what it has
// if none is asked for. The errors are [push.ErrTooManyKeys], [*push.ScopeError], [*push.EndError] and [push.ErrCallerOver].
func (s *Store) CreateKey(ctx context.Context, n push.NewKey) (k push.APIKey, secret string, err error) {
	id := uuid.New()
	secret, hash := newSecret()
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if n.Most > 0 {
				if err := keyFits(ctx, tx, n, id); err != nil {
					return err
				}
			}
			n, err := withinRights(ctx, tx, n)
			if err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `
				INSERT INTO api_keys (id, tenant_id, name, hash, scopes, lifetime, expires_at)
				SELECT $1, $2, $3, $4, $5, l.lifetime, coalesce($7, n.now + l.lifetime)
				FROM (SELECT clock_timestamp() AS now OFFSET 0) n, LATERAL (SELECT coalesce(nullif($6::interval, '0'), $7::timestamptz - n.now) AS lifetime) l
				ON CONFLICT (id) DO NOTHING`,
				id, n.Tenant, n.Name, hash[:], distinct(n.Scopes), n.Lifetime, zeronull.Timestamptz(n.ExpiresAt))
			if err != nil {
				return err
			}
			if k, err = readKey(ctx, tx, n.Tenant, id); err != nil || tag.RowsAffected() == 0 {
				return err // an earlier run has made it
			}
			return auditlog.Record(ctx, tx, n.Tenant, push.ActKeyCreate, id.String(), keyMade(k))
		})
	})
	if err != nil {
		return push.APIKey{}, "", fmt.Errorf("create key: %w", err)
	}
	return k, secret, nil
}

// keyMade is what the audit log says of a new key.
func keyMade(k push.APIKey) auditlog.Difference {
	d := auditlog.Difference{}
	d.Show("name", nil, k.Name)
	d.Show("scopes", nil, k.Scopes)
	d.Show("expires_at", nil, auditlog.TimeOf(k.ExpiresAt))
	return d
}

// keyFits counts a tenant's live keys but for one, and forgets those that have ended longest ago. One request at a time
// does so.
func keyFits(ctx context.Context, tx pgx.Tx, n push.NewKey, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant); err != nil {
		return err
	}
	var others int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM api_keys k WHERE tenant_id = $1 AND id <> $2 AND `+keyState+` = $3`, n.Tenant, id, push.KeyLive).Scan(&others)
	switch {
	case err != nil:
		return err
	case others >= n.Most:
		return push.ErrTooManyKeys
	}
	rows, _ := tx.Query(ctx, `SELECT id FROM api_keys k WHERE tenant_id = $1 AND `+keyState+` <> $2 ORDER BY coalesce(revoked_at, expires_at) DESC, id OFFSET $3`,
		n.Tenant, push.KeyLive, endedKeysKept)
	old, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(old) == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE api_keys SET successor = NULL WHERE successor = ANY($1)`, old); err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `DELETE FROM api_keys WHERE id = ANY($1)`, old)
	return err
}

// readKey reads an API key of a tenant, or of any for [uuid.Nil].
func readKey(ctx context.Context, q pg.Querier, tenant, id uuid.UUID) (push.APIKey, error) {
	rows, _ := q.Query(ctx, `SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.id = $1 AND ($2::uuid IS NULL OR k.tenant_id = $2)`,
		id, zeronull.UUID(tenant))
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[push.APIKey])
}

// APIKey returns a tenant's API key, or [push.ErrNotFound].
func (s *Store) APIKey(ctx context.Context, tenant, id uuid.UUID) (k push.APIKey, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		k, err = readKey(ctx, c, tenant, id)
		return err
	})
	return k, err
}

// distinct leaves out what a list has named before.
func distinct(names []string) []string {
	var list []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// newSecret returns a key itself, and what is stored of it.
func newSecret() (string, [32]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key := "sq_" + base64.RawURLEncoding.EncodeToString(secret[:])
	return key, HashKey(key)
}

// RevokeKey has an API key refused from now on, and reports whether it was revoked before. A caller revokes keys of its tenant that have
// no scope which it lacks; nil, the operator, any key. The errors are [push.ErrNotFound] and [*push.ScopeError].
func (s *Store) RevokeKey(ctx context.Context, by *push.Caller, id uuid.UUID) (before bool, err error) {
	type revoked struct {
		Before bool
		Tenant uuid.UUID
		Scopes []string
	}
	tenant := tenantOf(by)
	row, err := auditlog.RecordOnce(ctx, s.db, tenant, pgx.RowToStructByPos[revoked], func(ctx context.Context, tx pgx.Tx, r revoked) error {
		if err := mayRule(by, r.Scopes); err != nil || r.Before {
			return err
		}
		return auditlog.Record(ctx, tx, r.Tenant, push.ActKeyRevoke, id.String(), nil)
	}, `
		WITH old AS (SELECT id, revoked_at FROM api_keys WHERE id = $1 AND ($2::uuid IS NULL OR tenant_id = $2) FOR UPDATE)
		UPDATE api_keys k SET revoked_at = coalesce(old.revoked_at, clock_timestamp()) FROM old WHERE k.id = old.id
		RETURNING old.revoked_at IS NOT NULL, k.tenant_id, k.scopes`, id, zeronull.UUID(tenant))
	if err != nil {
		return false, fmt.Errorf("revoke key: %w", err)
	}
	return row.Before, nil
}

// Keys lists the API keys of one tenant, or of all for [uuid.Nil], the oldest first.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID) ([]push.APIKey, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[push.APIKey], `
		SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
		WHERE $1::uuid IS NULL OR k.tenant_id = $1 ORDER BY k.created_at, k.id`, zeronull.UUID(tenant))
}

// KeyPage returns up to limit of a tenant's API keys behind a position, the oldest first.
func (s *Store) KeyPage(ctx context.Context, tenant uuid.UUID, after push.KeyPosition, limit int) (page push.KeyPage, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `
			SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
			WHERE k.tenant_id = $1 AND (k.created_at, k.id) > ($2, $3) ORDER BY k.created_at, k.id LIMIT $4`,
			tenant, after.CreatedAt, after.ID, limit+1)
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[push.APIKey])
		if page = (push.KeyPage{Keys: keys}); len(keys) > limit {
			last := keys[limit-1]
			page.Keys, page.Next = keys[:limit], &push.KeyPosition{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		return err
	})
	return page, err
}

// HashKey returns what is stored of an API key: its SHA-256. The key itself has 256 random bits, so that nothing slower
// is needed.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// Key returns what the API key with this SHA-256 allows, or [push.ErrNotFound] if there is none, its time is over, or
// it was revoked.
func (s *Store) Key(ctx context.Context, hash [32]byte) (push.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	var c push.Caller
	err := s.db.Pool.QueryRow(ctx, `
		SELECT k.id, k.tenant_id, k.scopes, coalesce(k.expires_at - n.now, '0'), k.last_used_at < n.now - interval '1 minute' IS NOT FALSE, t.pending_cap, t.recipients_cap, t.audience_cap
		FROM (SELECT clock_timestamp() AS now OFFSET 0) n, api_keys k JOIN tenants t ON t.id = k.tenant_id
		WHERE k.hash = $1 AND t.deleting_at IS NULL AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > n.now)`, hash[:]).
		Scan(&c.Key, &c.Tenant, &c.Scopes, &c.Left, &c.Unseen, &c.Caps.PendingPushes, &c.Caps.RecipientsPerDay, &c.Caps.AudienceBytes)
	return c, pg.Classify(err)
}

// SeeKey notes that an API key is in use, at most once a minute.
func (s *Store) SeeKey(ctx context.Context, id uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	_, err := s.db.Pool.Exec(ctx, `
		UPDATE api_keys SET last_used_at = clock_timestamp()
		WHERE id = $1 AND last_used_at < clock_timestamp() - interval '1 minute' IS NOT FALSE`, id)
	return pg.Classify(err)
}
