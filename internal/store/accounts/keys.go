package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
)

// endedKeysKept is the number of ended API keys that stay in a tenant's list.
const endedKeysKept = 1000

// keyColumns are the columns of [apikey.Key], of api_keys k and tenants t.
const keyColumns = `k.id, t.name, k.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, ` + keyState + `, coalesce(k.successor, ` + pg.NoID + `)`

// keyState is the [apikey.State] of a row of api_keys k.
const keyState = `CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'live' END`

// CreateKey creates an API key of a tenant, and returns it with its secret: "sq_" and 256 random bits in base64. The
// database stores only the SHA-256 of the secret.
//
// A caller that creates a key gives it none but its own scopes, and no later expiry than its own key's; that expiry
// is also the default. The errors are [apikey.ErrTooMany], [*push.ScopeError], [*apikey.EndError] and
// [apikey.ErrCallerOver].
func (s *Store) CreateKey(ctx context.Context, n apikey.NewKey) (k apikey.Key, secret string, err error) {
	id := uuid.New()
	secret, hash := newSecret()
	err = s.db.Change(ctx, n.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if n.Most > 0 {
				if err := checkKeyLimit(ctx, tx, n, id); err != nil {
					return err
				}
			}
			n, err := limitToCaller(ctx, tx, n)
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
				return err // an earlier run created it
			}
			return auditlogs.Record(ctx, tx, n.Tenant, auditlog.KeyCreate, id.String(), keyDifference(k))
		})
	})
	if err != nil {
		return apikey.Key{}, "", fmt.Errorf("create key: %w", err)
	}
	return k, secret, nil
}

// keyDifference returns the audit log's description of a new key.
func keyDifference(k apikey.Key) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Show("name", nil, k.Name)
	d.Show("scopes", nil, k.Scopes)
	d.Show("expires_at", nil, auditlogs.TimeOf(k.ExpiresAt))
	return d
}

// checkKeyLimit returns [apikey.ErrTooMany] if the tenant has n.Most live keys besides id. It also deletes the
// oldest ended keys beyond endedKeysKept. It locks the tenant, so that one request at a time counts.
func checkKeyLimit(ctx context.Context, tx pgx.Tx, n apikey.NewKey, id uuid.UUID) error {
	if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, n.Tenant); err != nil {
		return err
	}
	var others int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM api_keys k WHERE tenant_id = $1 AND id <> $2 AND `+keyState+` = $3`, n.Tenant, id, apikey.Live).Scan(&others)
	switch {
	case err != nil:
		return err
	case others >= n.Most:
		return apikey.ErrTooMany
	}
	rows, _ := tx.Query(ctx, `SELECT id FROM api_keys k WHERE tenant_id = $1 AND `+keyState+` <> $2 ORDER BY coalesce(revoked_at, expires_at) DESC, id OFFSET $3`,
		n.Tenant, apikey.Live, endedKeysKept)
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

// readKey reads an API key of a tenant; [uuid.Nil] is any tenant.
func readKey(ctx context.Context, q pg.Querier, tenant, id uuid.UUID) (apikey.Key, error) {
	rows, _ := q.Query(ctx, `SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id WHERE k.id = $1 AND ($2::uuid IS NULL OR k.tenant_id = $2)`,
		id, zeronull.UUID(tenant))
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[apikey.Key])
}

// APIKey returns a tenant's API key, or [push.ErrNotFound].
func (s *Store) APIKey(ctx context.Context, tenant, id uuid.UUID) (k apikey.Key, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		k, err = readKey(ctx, c, tenant, id)
		return err
	})
	return k, err
}

// distinct returns the names without repetitions, in their order.
func distinct(names []string) []string {
	var list []string
	for _, name := range names {
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list
}

// newSecret returns a new API key and its SHA-256.
func newSecret() (string, [32]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key := "sq_" + base64.RawURLEncoding.EncodeToString(secret[:])
	return key, HashKey(key)
}

// RevokeKey revokes an API key, and reports whether it was revoked before. A caller can revoke the keys of its tenant
// that have no scope beyond its own; the operator, nil, can revoke any key. The errors are [push.ErrNotFound] and
// [*push.ScopeError].
func (s *Store) RevokeKey(ctx context.Context, by *push.Caller, id uuid.UUID) (before bool, err error) {
	type revoked struct {
		Before bool
		Tenant uuid.UUID
		Scopes []string
	}
	tenant := tenantOf(by)
	row, err := auditlogs.RecordOnce(ctx, s.db, tenant, pgx.RowToStructByPos[revoked], func(ctx context.Context, tx pgx.Tx, r revoked) error {
		if err := checkScopes(by, r.Scopes); err != nil || r.Before {
			return err
		}
		return auditlogs.Record(ctx, tx, r.Tenant, auditlog.KeyRevoke, id.String(), nil)
	}, `
		WITH old AS (SELECT id, revoked_at FROM api_keys WHERE id = $1 AND ($2::uuid IS NULL OR tenant_id = $2) FOR UPDATE)
		UPDATE api_keys k SET revoked_at = coalesce(old.revoked_at, clock_timestamp()) FROM old WHERE k.id = old.id
		RETURNING old.revoked_at IS NOT NULL, k.tenant_id, k.scopes`, id, zeronull.UUID(tenant))
	if err != nil {
		return false, fmt.Errorf("revoke key: %w", err)
	}
	return row.Before, nil
}

// Keys lists the API keys of a tenant, the oldest first; [uuid.Nil] is all tenants.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID) ([]apikey.Key, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[apikey.Key], `
		SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
		WHERE $1::uuid IS NULL OR k.tenant_id = $1 ORDER BY k.created_at, k.id`, zeronull.UUID(tenant))
}

// KeyPage returns up to limit of a tenant's API keys after a position, the oldest first.
func (s *Store) KeyPage(ctx context.Context, tenant uuid.UUID, after apikey.Position, limit int) (page apikey.Page, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `
			SELECT `+keyColumns+` FROM api_keys k JOIN tenants t ON t.id = k.tenant_id
			WHERE k.tenant_id = $1 AND (k.created_at, k.id) > ($2, $3) ORDER BY k.created_at, k.id LIMIT $4`,
			tenant, after.CreatedAt, after.ID, limit+1)
		keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[apikey.Key])
		if page = (apikey.Page{Keys: keys}); len(keys) > limit {
			last := keys[limit-1]
			page.Keys, page.Next = keys[:limit], &apikey.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		return err
	})
	return page, err
}

// HashKey returns the SHA-256 of an API key, which is what the database stores. A key has 256 random bits, so a
// slower hash would not make it safer.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// Key returns the caller whose API key has this SHA-256. It returns [push.ErrNotFound] if there is no such key, it
// has expired or was revoked, or its tenant is being deleted.
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

// RecordKeyUse records the time when an API key was last used, at most once a minute.
func (s *Store) RecordKeyUse(ctx context.Context, id uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	_, err := s.db.Pool.Exec(ctx, `
		UPDATE api_keys SET last_used_at = clock_timestamp()
		WHERE id = $1 AND last_used_at < clock_timestamp() - interval '1 minute' IS NOT FALSE`, id)
	return pg.Classify(err)
}
