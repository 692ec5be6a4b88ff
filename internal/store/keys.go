package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
)

// APIKey is what is known of an API key. The key itself is kept nowhere.
type APIKey struct {
	ID         uuid.UUID
	Tenant     string // its name
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil: never
	LastUsedAt *time.Time // to about a minute; nil: never
	RevokedAt  *time.Time // nil: it was not
	State      KeyState   // when it was read
	Successor  uuid.UUID  // the key that its last rotation made; Nil: it was not rotated
}

// KeyState says whether an API key opens anything.
type KeyState string

// The states of a key.
const (
	KeyLive    KeyState = "live"
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked"
)

// ErrKeyOver: an API key that is revoked or has expired can not be rotated.
var ErrKeyOver = errors.New("the key is revoked or has expired; make a new one")

// ReplacedError says that an API key was rotated, and that the key which replaces it is alive. Two live keys are what a
// rotation is for.
type ReplacedError struct{ Key, Successor uuid.UUID }

// Error says it, and what to do.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the key %s was rotated, and the key %s replaces it; as long as both are live, neither can be rotated: revoke one first", e.Key, e.Successor)
}

// CreateKey makes an API key of a tenant and returns it: "sq_" and 256 random bits in base64. Only its SHA-256 is
// stored. It ends after ttl; 0: never. A scope that is named twice is stored once.
func (s *Store) CreateKey(ctx context.Context, tenant uuid.UUID, scopes []string, ttl time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	key, hash := newKey()
	_, err := s.pool.Exec(ctx, `
		INSERT INTO api_keys (id, tenant_id, hash, scopes, lifetime, expires_at)
		VALUES ($1, $2, $3, $4, nullif($5::interval, '0'), clock_timestamp() + nullif($5::interval, '0'))`,
		[16]byte(uuid.New()), [16]byte(tenant), hash[:], distinct(scopes), ttl)
	if err != nil {
		return "", fmt.Errorf("create key: %w", classify(err))
	}
	return key, nil
}

// RotateKey makes another API key with the tenant and scopes of an old one, and returns it. The old one lives on for
// the overlap, if its own end is not nearer. The new one ends after ttl; 0: after the time for which the old one was
// made. There may be no such key, [push.ErrNotFound], none that is alive, [ErrKeyOver], or another live one that it
// replaces or is replaced by, [*ReplacedError].
func (s *Store) RotateKey(ctx context.Context, old uuid.UUID, overlap, ttl time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	key, hash := newKey()
	err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if err := rotatable(ctx, tx, old); err != nil {
			return err
		}
		fresh := uuid.New()
		if _, err := tx.Exec(ctx, `
			INSERT INTO api_keys (id, tenant_id, hash, scopes, lifetime, expires_at)
			SELECT $2, tenant_id, $3, scopes, n.lifetime, clock_timestamp() + n.lifetime
			FROM api_keys k, LATERAL (SELECT coalesce(nullif($4::interval, '0'), k.lifetime) AS lifetime) n WHERE id = $1`,
			[16]byte(old), [16]byte(fresh), hash[:], ttl); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE api_keys SET expires_at = least(expires_at, clock_timestamp() + $2::interval), successor = $3 WHERE id = $1`,
			[16]byte(old), overlap, [16]byte(fresh))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("rotate key: %w", classify(err))
	}
	return key, nil
}

// rotatable locks a key and says why it can not be rotated, if so. What it replaces, and what replaces it, is read
// after the lock: one statement would not see what it had waited for.
func rotatable(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	var (
		state     KeyState
		successor uuid.UUID
	)
	err := tx.QueryRow(ctx, `SELECT `+keyState+`, successor FROM api_keys k WHERE id = $1 FOR UPDATE`, [16]byte(id)).Scan(&state, (*zeronull.UUID)(&successor))
	switch {
	case err != nil:
		return err
	case state != KeyLive:
		return ErrKeyOver
	}
	rows, _ := tx.Query(ctx, `SELECT id, successor IS NOT DISTINCT FROM $1 FROM api_keys k WHERE (id = $2 OR successor = $1) AND `+keyState+` = $3`,
		[16]byte(id), [16]byte(successor), KeyLive)
	var (
		other    uuid.UUID
		replaced bool
	)
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&other), &replaced}, func() error {
		if replaced {
			return &ReplacedError{other, id}
		}
		return &ReplacedError{id, other}
	})
	return err
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

// newKey returns a key, and what is stored of it.
func newKey() (string, [32]byte) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key := "sq_" + base64.RawURLEncoding.EncodeToString(secret[:])
	return key, HashKey(key)
}

// RevokeKey has an API key refused from now on, and reports whether it was revoked before. There may be no such key:
// [push.ErrNotFound].
func (s *Store) RevokeKey(ctx context.Context, id uuid.UUID) (before bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	err = s.pool.QueryRow(ctx, `
		WITH old AS (SELECT id, revoked_at FROM api_keys WHERE id = $1 FOR UPDATE)
		UPDATE api_keys k SET revoked_at = coalesce(old.revoked_at, clock_timestamp()) FROM old WHERE k.id = old.id
		RETURNING old.revoked_at IS NOT NULL`, [16]byte(id)).Scan(&before)
	if err != nil {
		return false, fmt.Errorf("revoke key: %w", classify(err))
	}
	return before, nil
}

const keyState = `CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= clock_timestamp() THEN 'expired' ELSE 'live' END`

// Keys lists the API keys of one tenant, or of all for [uuid.Nil], the oldest first.
func (s *Store) Keys(ctx context.Context, tenant uuid.UUID) ([]APIKey, error) {
	where, args := ``, []any(nil)
	if tenant != uuid.Nil {
		where, args = `WHERE k.tenant_id = $1`, []any{[16]byte(tenant)}
	}
	scan := func(row pgx.CollectableRow) (k APIKey, err error) {
		err = row.Scan((*[16]byte)(&k.ID), &k.Tenant, &k.Scopes, &k.CreatedAt, &k.ExpiresAt, &k.LastUsedAt, &k.RevokedAt, &k.State, (*zeronull.UUID)(&k.Successor))
		return k, err
	}
	return collect(ctx, s, scan, `
		SELECT k.id, t.name, k.scopes, k.created_at, k.expires_at, k.last_used_at, k.revoked_at, `+keyState+`, k.successor
		FROM api_keys k JOIN tenants t ON t.id = k.tenant_id `+where+` ORDER BY k.created_at, k.id`, args...)
}

// HashKey returns what is stored of an API key: its SHA-256. The key itself has 256 random bits, so that nothing slower
// is needed.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// Key returns what the API key with this SHA-256 allows, or [push.ErrNotFound] if there is none, its time is over, or
// it was revoked.
func (s *Store) Key(ctx context.Context, hash [32]byte) (push.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var c push.Caller
	err := s.pool.QueryRow(ctx, `
		SELECT k.id, k.tenant_id, k.scopes, coalesce(k.expires_at - n.now, '0'), k.last_used_at < n.now - interval '1 minute' IS NOT FALSE, t.pending_cap, t.recipients_cap
		FROM (SELECT clock_timestamp() AS now OFFSET 0) n, api_keys k JOIN tenants t ON t.id = k.tenant_id
		WHERE k.hash = $1 AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > n.now)`, hash[:]).
		Scan((*[16]byte)(&c.Key), (*[16]byte)(&c.Tenant), &c.Scopes, &c.Left, &c.Unseen, &c.Caps.PendingPushes, &c.Caps.RecipientsPerDay)
	return c, classify(err)
}

// SeeKey notes that an API key is in use, at most once a minute.
func (s *Store) SeeKey(ctx context.Context, id uuid.UUID) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, `
		UPDATE api_keys SET last_used_at = clock_timestamp()
		WHERE id = $1 AND last_used_at < clock_timestamp() - interval '1 minute' IS NOT FALSE`, [16]byte(id))
	return classify(err)
}
