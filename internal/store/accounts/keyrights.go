package accounts

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// tenantOf returns the tenant whose API keys a caller changes: [uuid.Nil], all of them, for the operator.
func tenantOf(by *push.Caller) uuid.UUID {
	if by == nil {
		return uuid.Nil
	}
	return by.Tenant
}

// mayRule returns a [*push.ScopeError] if an API key has scopes that the caller lacks, who then neither makes nor ends it.
func mayRule(by *push.Caller, scopes []string) error {
	if by == nil {
		return nil
	}
	missing := by.Lacks(scopes)
	if len(missing) == 0 {
		return nil
	}
	return &push.ScopeError{Scope: missing[0], Detail: "a caller makes, rotates and revokes only API keys whose scopes it has; it lacks " + strings.Join(missing, ", ")}
}

// lockKeys locks API keys in one order, so that two that rotate each other do not wait for each other.
func lockKeys(ctx context.Context, tx pgx.Tx, ids ...uuid.UUID) error {
	_, err := tx.Exec(ctx, `SELECT FROM api_keys WHERE id = ANY ($1) ORDER BY id FOR UPDATE`, ids)
	return err
}

// lastEnd locks the API key of a caller, and returns when it ends, as must what it makes: zero, if never or if the caller has none. A
// key that has ended makes nothing any more: [push.ErrCallerOver].
func lastEnd(ctx context.Context, tx pgx.Tx, by *push.Caller) (end time.Time, err error) {
	if by == nil || by.Key == uuid.Nil {
		return end, nil
	}
	var (
		state push.KeyState
		at    *time.Time
	)
	err = tx.QueryRow(ctx, `SELECT `+keyState+`, expires_at FROM api_keys k WHERE id = $1 FOR SHARE`, by.Key).Scan(&state, &at)
	switch {
	case errors.Is(err, pgx.ErrNoRows), err == nil && state != push.KeyLive:
		return end, push.ErrCallerOver
	case err != nil || at == nil:
		return end, err
	}
	return *at, nil
}

// withinRights returns a key that is to be made with the end that the key of its maker leaves it, or why it may not be made.
func withinRights(ctx context.Context, tx pgx.Tx, n push.NewKey) (push.NewKey, error) {
	if err := mayRule(n.By, n.Scopes); err != nil {
		return n, err
	}
	end, err := lastEnd(ctx, tx, n.By)
	switch {
	case err != nil || end.IsZero():
	case n.ExpiresAt.IsZero():
		n.ExpiresAt = end
	case n.ExpiresAt.After(end):
		err = &push.EndError{Wanted: n.ExpiresAt, Latest: end}
	}
	return n, err
}
