package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
)

// RotateKey creates an API key with the tenant, name and scopes of an old one, and returns it with its secret. The
// old key stays valid for overlap, or until its own expiry if that comes first. The new key expires after lifetime; 0
// takes the lifetime that the old key was created with.
//
// by is the caller; nil is the operator. A caller's key limits the new key, and the errors are the same, as for
// [Store.CreateKey]. Other errors: [push.ErrNotFound] if the caller's tenant has no such key, [apikey.ErrOver] if
// the key has ended, and [*apikey.ReplacedError] if another live key replaces it or is replaced by it.
func (s *Store) RotateKey(ctx context.Context, by *push.Caller, old uuid.UUID, overlap, lifetime time.Duration) (k apikey.Key, secret string, err error) {
	tenant, fresh := tenantOf(by), uuid.New()
	secret, hash := newSecret()
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if k, err = readKey(ctx, tx, tenant, fresh); !errors.Is(err, pgx.ErrNoRows) {
				return err // an earlier run created it, or the read failed
			}
			end, err := lockForRotation(ctx, tx, by, old)
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `
				INSERT INTO api_keys (id, tenant_id, name, hash, scopes, lifetime, expires_at)
				SELECT $2, tenant_id, name, $3, scopes, n.lifetime, least(clock_timestamp() + n.lifetime, $5)
				FROM api_keys k, LATERAL (SELECT coalesce(nullif($4::interval, '0'), k.lifetime) AS lifetime) n WHERE id = $1`,
				old, fresh, hash[:], lifetime, zeronull.Timestamptz(end)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `UPDATE api_keys SET expires_at = least(expires_at, clock_timestamp() + $2::interval), successor = $3 WHERE id = $1`,
				old, overlap, fresh); err != nil {
				return err
			}
			if k, err = readKey(ctx, tx, tenant, fresh); err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("successor", nil, fresh)
			d.Show("overlap", nil, overlap.String())
			d.Show("expires_at", nil, auditlogs.TimeOf(k.ExpiresAt))
			return s.recordRotation(ctx, tx, old, d)
		})
	})
	if err != nil {
		return apikey.Key{}, "", fmt.Errorf("rotate key: %w", err)
	}
	return k, secret, nil
}

// recordRotation adds a rotation to the audit log of the key's tenant, which need not be the caller's.
func (s *Store) recordRotation(ctx context.Context, tx pgx.Tx, key uuid.UUID, d auditlogs.Difference) error {
	var tenant uuid.UUID
	if err := tx.QueryRow(ctx, `SELECT tenant_id FROM api_keys WHERE id = $1`, key).Scan(&tenant); err != nil {
		return err
	}
	return auditlogs.Record(ctx, tx, tenant, auditlog.KeyRotate, key.String(), d)
}

// lockForRotation locks a key and the caller's key. It returns the latest expiry of the new key, zero if unlimited,
// or the reason why the key cannot be rotated. It reads the successors in a second statement: the statement that
// waits for the lock does not see what the other transaction has written.
func lockForRotation(ctx context.Context, tx pgx.Tx, by *push.Caller, id uuid.UUID) (end time.Time, err error) {
	locked := []uuid.UUID{id}
	if by != nil && by.Key != uuid.Nil {
		locked = append(locked, by.Key)
	}
	if err := lockKeys(ctx, tx, locked...); err != nil {
		return end, err
	}
	k, err := readKey(ctx, tx, tenantOf(by), id)
	if err == nil {
		err = checkScopes(by, k.Scopes)
	}
	if err == nil {
		end, err = latestExpiry(ctx, tx, by)
	}
	if err == nil && k.State != apikey.Live {
		err = apikey.ErrOver
	}
	if err != nil {
		return end, err
	}
	return end, checkNotReplaced(ctx, tx, id, k.Successor)
}

// checkNotReplaced returns a [*apikey.ReplacedError] if the key was rotated, or was created by a rotation, and the
// other key is live.
func checkNotReplaced(ctx context.Context, tx pgx.Tx, id, successor uuid.UUID) error {
	rows, _ := tx.Query(ctx, `SELECT id, successor IS NOT DISTINCT FROM $1 FROM api_keys k WHERE (id = $2 OR successor = $1) AND `+keyState+` = $3`,
		id, successor, apikey.Live)
	var (
		other    uuid.UUID
		replaced bool
	)
	_, err := pgx.ForEachRow(rows, []any{&other, &replaced}, func() error {
		if replaced {
			return &apikey.ReplacedError{Key: other, Successor: id}
		}
		return &apikey.ReplacedError{Key: id, Successor: other}
	})
	return err
}
