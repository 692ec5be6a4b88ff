package accounts

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// RotateKey makes another API key with the tenant, name and scopes of an old one, and returns it with its secret. The
// old one lives on for the overlap, if its own end is not nearer. The new one ends after lifetime; 0: after the time for
// which the old one was made. The key of a caller makes it within its own rights, as [Store.CreateKey] says; nil is the operator. The
// caller's tenant may have no such key, [push.ErrNotFound], none that is alive, [push.ErrKeyOver], or another live one that it replaces
// or is replaced by, [*push.ReplacedError]. The other errors are those of [Store.CreateKey].
func (s *Store) RotateKey(ctx context.Context, by *push.Caller, old uuid.UUID, overlap, lifetime time.Duration) (k push.APIKey, secret string, err error) {
	tenant, fresh := tenantOf(by), uuid.New()
	secret, hash := newSecret()
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if k, err = readKey(ctx, tx, tenant, fresh); !errors.Is(err, pgx.ErrNoRows) {
				return err // an earlier run has made it, or it is unknown
			}
			end, err := rotatable(ctx, tx, by, old)
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
			d := auditlog.Difference{}
			d.Show("successor", nil, fresh)
			d.Show("overlap", nil, overlap.String())
			d.Show("expires_at", nil, auditlog.TimeOf(k.ExpiresAt))
			return s.recordKey(ctx, tx, old, d)
		})
	})
	if err != nil {
		return push.APIKey{}, "", fmt.Errorf("rotate key: %w", err)
	}
	return k, secret, nil
}

// recordKey records a rotation for the tenant of the key, whoever that is.
func (s *Store) recordKey(ctx context.Context, tx pgx.Tx, key uuid.UUID, d auditlog.Difference) error {
	var tenant uuid.UUID
	if err := tx.QueryRow(ctx, `SELECT tenant_id FROM api_keys WHERE id = $1`, key).Scan(&tenant); err != nil {
		return err
	}
	return auditlog.Record(ctx, tx, tenant, push.ActKeyRotate, key.String(), d)
}

// rotatable locks a key and that of the caller. It returns why the key cannot be rotated, or until when the new one may live: zero, for
// ever. What a key replaces, and what replaces it, is read after the lock: one statement would not see what it had waited for.
func rotatable(ctx context.Context, tx pgx.Tx, by *push.Caller, id uuid.UUID) (end time.Time, err error) {
	locked := []uuid.UUID{id}
	if by != nil && by.Key != uuid.Nil {
		locked = append(locked, by.Key)
	}
	if err := lockKeys(ctx, tx, locked...); err != nil {
		return end, err
	}
	k, err := readKey(ctx, tx, tenantOf(by), id)
	if err == nil {
		err = mayRule(by, k.Scopes)
	}
	if err == nil {
		end, err = lastEnd(ctx, tx, by)
	}
	if err == nil && k.State != push.KeyLive {
		err = push.ErrKeyOver
	}
	if err != nil {
		return end, err
	}
	return end, notReplaced(ctx, tx, id, k.Successor)
}

// notReplaced returns a [*push.ReplacedError] if a key was rotated, or made by a rotation, and the other one lives.
func notReplaced(ctx context.Context, tx pgx.Tx, id, successor uuid.UUID) error {
	rows, _ := tx.Query(ctx, `SELECT id, successor IS NOT DISTINCT FROM $1 FROM api_keys k WHERE (id = $2 OR successor = $1) AND `+keyState+` = $3`,
		id, successor, push.KeyLive)
	var (
		other    uuid.UUID
		replaced bool
	)
	_, err := pgx.ForEachRow(rows, []any{&other, &replaced}, func() error {
		if replaced {
			return &push.ReplacedError{Key: other, Successor: id}
		}
		return &push.ReplacedError{Key: id, Successor: other}
	})
	return err
}
