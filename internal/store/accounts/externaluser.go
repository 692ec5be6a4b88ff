package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlogs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/user"
)

// ExternalUser returns the user who signs in with an OIDC provider, and sets the role that the provider gives, even
// for the last admin. A subject that is new to the tenant creates a user, or takes over the user with its email
// address. A take-over, another role and another address each end the user's password, link and sessions.
//
// A new subject needs a verified address, or it fails with [user.ErrUnverified]. If the address belongs to another
// subject, it fails with [user.ErrEmailTaken]. The other errors are [user.ErrDisabled], and [user.ErrTooMany] if the
// tenant has the maximum number of users.
func (s *Store) ExternalUser(ctx context.Context, e user.External) (u user.User, err error) {
	fresh := uuid.New()
	err = s.changeUsers(ctx, e.Tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		action, before := auditlog.UserChange, user.User{}
		id, err := externalID(ctx, tx, e)
		switch {
		case err == nil:
			before, err = lockUser(ctx, tx, e.Tenant, id, nil)
		case errors.Is(err, pgx.ErrNoRows):
			action, id = auditlog.UserCreate, fresh
			err = checkUserLimit(ctx, tx, e.Tenant, fresh, e.Most)
		}
		if err != nil {
			return err
		}
		if u, err = writeExternal(ctx, tx, id, e); err != nil {
			return err
		}
		if action == auditlog.UserChange && (!before.External || u.Role != before.Role || u.Email != before.Email) {
			if u, err = endSignIn(ctx, tx, u); err != nil {
				return err
			}
		}
		if d := userDifference(before, u); len(d) > 0 {
			return auditlogs.Record(ctx, tx, e.Tenant, action, id.String(), d)
		}
		return nil
	})
	if err != nil {
		return user.User{}, fmt.Errorf("external user: %w", err)
	}
	return u, nil
}

// externalID finds a provider's user by subject, or else by verified address. It returns [pgx.ErrNoRows] if the user
// is still to be created.
func externalID(ctx context.Context, tx pgx.Tx, e user.External) (id uuid.UUID, err error) {
	var (
		known, disabled bool
		subject         string
	)
	err = tx.QueryRow(ctx, `
		SELECT id, (issuer = $2 AND subject = $3) IS TRUE, coalesce(subject, ''), disabled_at IS NOT NULL FROM users
		WHERE tenant_id = $1 AND (issuer = $2 AND subject = $3 OR email = $4) ORDER BY (issuer = $2 AND subject = $3) IS TRUE DESC LIMIT 1`,
		e.Tenant, e.Issuer, e.Subject, e.Email).Scan(&id, &known, &subject, &disabled)
	switch {
	case !known && !e.EmailVerified && (err == nil || errors.Is(err, pgx.ErrNoRows)):
		return id, user.ErrUnverified // the same error with and without such a user
	case err != nil:
		return id, err
	case disabled:
		return id, user.ErrDisabled
	case !known && subject != "":
		return id, user.ErrEmailTaken
	}
	return id, nil
}

// writeExternal creates or updates a provider's user and returns it. It takes over the provider's name, unless that
// is empty, and the address, if it is verified and no other user of the tenant has it.
func writeExternal(ctx context.Context, tx pgx.Tx, id uuid.UUID, e user.External) (user.User, error) {
	_, err := tx.Exec(ctx, `
		INSERT INTO users (id, tenant_id, email, name, role, issuer, subject) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (id) DO UPDATE SET name = coalesce(nullif(excluded.name, ''), users.name), role = excluded.role, issuer = excluded.issuer, subject = excluded.subject,
			email = CASE WHEN $8 AND NOT EXISTS (SELECT FROM users o WHERE o.tenant_id = $2 AND o.email = $3) THEN excluded.email ELSE users.email END`,
		id, e.Tenant, e.Email, e.Name, e.Role, e.Issuer, e.Subject, e.EmailVerified)
	if err != nil {
		return user.User{}, err
	}
	return readUser(ctx, tx, e.Tenant, id)
}

// endSignIn ends the password, the link and the sessions of a locked user, and returns the user.
func endSignIn(ctx context.Context, tx pgx.Tx, u user.User) (user.User, error) {
	_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, u.ID)
	if err == nil {
		err = endSignInUnless(ctx, tx, u.ID, []user.Role{})
	}
	if err != nil {
		return user.User{}, err
	}
	return readUser(ctx, tx, u.Tenant, u.ID)
}
