package accounts

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
)

// tenantOf returns the tenant whose API keys a caller may change. For the operator, nil, it returns [uuid.Nil], which
// means all tenants.
func tenantOf(by *push.Caller) uuid.UUID {
	if by == nil {
		return uuid.Nil
	}
	return by.Tenant
}

// checkScopes returns a [*push.ScopeError] if a key has a scope that the caller lacks: a caller creates, rotates and
// revokes only keys within its own scopes. The operator, nil, has all scopes.
func checkScopes(by *push.Caller, scopes []string) error {
	if by == nil {
		return nil
	}
	missing := by.Lacks(scopes)
	if len(missing) == 0 {
		return nil
	}
	return &push.ScopeError{Scope: missing[0], Detail: "a caller can create, rotate and revoke only API keys within its own scopes; missing: " + strings.Join(missing, ", ")}
}

// lockKeys locks API keys in the order of their ids, so that two keys that rotate each other do not deadlock.
func lockKeys(ctx context.Context, tx pgx.Tx, ids ...uuid.UUID) error {
	_, err := tx.Exec(ctx, `SELECT FROM api_keys WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
	return err
}

// latestExpiry locks the caller's API key and returns its expiry, which also limits the keys that it makes. Zero
// means no limit: the key never expires, or the caller has none. A caller whose key has ended gets
// [apikey.ErrCallerOver].
func latestExpiry(ctx context.Context, tx pgx.Tx, by *push.Caller) (end time.Time, err error) {
	if by == nil || by.Key == uuid.Nil {
		return end, nil
	}
	var (
		state apikey.State
		at    *time.Time
	)
	err = tx.QueryRow(ctx, `SELECT `+keyState+`, expires_at FROM api_keys k WHERE id = $1 FOR SHARE`, by.Key).Scan(&state, &at)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && state != apikey.Live:
		return end, apikey.ErrCallerOver
	case err != nil || at == nil:
		return end, err
	}
	return *at, nil
}

// limitToCaller checks that a new key stays within the scopes and the expiry of its maker's key. A new key without an
// expiry gets the maker's.
func limitToCaller(ctx context.Context, tx pgx.Tx, n apikey.NewKey) (apikey.NewKey, error) {
	if err := checkScopes(n.By, n.Scopes); err != nil {
		return n, err
	}
	end, err := latestExpiry(ctx, tx, n.By)
	switch {
	case err != nil || end.IsZero():
	case n.ExpiresAt.IsZero():
		n.ExpiresAt = end
	case n.ExpiresAt.After(end):
		err = &apikey.EndError{Wanted: n.ExpiresAt, Latest: end}
	}
	return n, err
}
