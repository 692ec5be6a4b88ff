package store

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// CreateTenant makes a tenant of that name, or finds it: created tells which.
func (s *Store) CreateTenant(ctx context.Context, name string) (id uuid.UUID, created bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	tag, err := s.pool.Exec(ctx, `INSERT INTO tenants (id, name) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING`, [16]byte(uuid.New()), name)
	if err != nil {
		return uuid.Nil, false, fmt.Errorf("create tenant: %w", classify(err))
	}
	id, err = s.Tenant(ctx, name)
	return id, tag.RowsAffected() == 1, err
}

// Tenant returns the id of the tenant of that name, or [push.ErrNotFound].
func (s *Store) Tenant(ctx context.Context, name string) (uuid.UUID, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var id uuid.UUID
	err := s.pool.QueryRow(ctx, `SELECT id FROM tenants WHERE name = $1`, name).Scan((*[16]byte)(&id))
	return id, classify(err)
}

// CreateKey makes an API key of a tenant and returns it: "sq_" and 256 random
// bits in base64. Only its SHA-256 is stored. It ends after ttl; 0: never.
func (s *Store) CreateKey(ctx context.Context, tenant uuid.UUID, scopes []string, ttl time.Duration) (string, error) {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	key := "sq_" + base64.RawURLEncoding.EncodeToString(secret[:])
	hash := HashKey(key)
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, `
		INSERT INTO api_keys (id, tenant_id, hash, scopes, expires_at)
		VALUES ($1, $2, $3, $4, CASE WHEN $5::bigint > 0 THEN clock_timestamp() + $5 * interval '1 microsecond' END)`,
		[16]byte(uuid.New()), [16]byte(tenant), hash[:], scopes, ttl.Microseconds())
	if err != nil {
		return "", fmt.Errorf("create key: %w", classify(err))
	}
	return key, nil
}

// HashKey returns what is stored of an API key: its SHA-256. The key itself has
// 256 random bits, so that nothing slower is needed.
func HashKey(key string) [32]byte { return sha256.Sum256([]byte(key)) }

// Key returns what the API key with this SHA-256 allows, or [push.ErrNotFound]
// if there is none or its time is over.
func (s *Store) Key(ctx context.Context, hash [32]byte) (push.Caller, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	var c push.Caller
	err := s.pool.QueryRow(ctx, `
		SELECT tenant_id, scopes FROM api_keys
		WHERE hash = $1 AND (expires_at IS NULL OR expires_at > clock_timestamp())`, hash[:]).Scan((*[16]byte)(&c.Tenant), &c.Scopes)
	return c, classify(err)
}
