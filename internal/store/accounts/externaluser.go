package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// ExternalUser returns the user that an OIDC provider vouches for, with the role that it gives, also to the last admin. A subject that
// comes for the first time is a new user, or takes over the user with its address. A take-over, and another role or address, end the
// password, the links and the sessions of the user. A new subject needs a verified address, [user.ErrUnverified], that no user of
// another subject has, [user.ErrEmailTaken]. The user may be disabled, [user.ErrDisabled], and the tenant may have the maximum number
// of users, [user.ErrTooMany].
func (s *Store) ExternalUser(ctx context.Context, e user.External) (u user.User, err error) {
	fresh := uuid.New()
	err = s.changeUsers(ctx, e.Tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		action, before := push.ActUserChange, user.User{}
		id, err := externalID(ctx, tx, e)
		switch {
		case err == nil:
			before, err = lockUser(ctx, tx, e.Tenant, id, nil)
		case errors.Is(err, pgx.ErrNoRows):
			action, id = push.ActUserCreate, fresh
			err = userFits(ctx, tx, e.Tenant, fresh, e.Most)
		}
		if err != nil {
			return err
		}
		if u, err = writeExternal(ctx, tx, id, e); err != nil {
			return err
		}
		if action == push.ActUserChange && (!before.External || u.Role != before.Role || u.Email != before.Email) {
			if u, err = endAll(ctx, tx, u); err != nil {
				return err
			}
		}
		if d := userDifference(before, u); len(d) > 0 {
			return auditlog.Record(ctx, tx, e.Tenant, action, id.String(), d)
		}
		return nil
	})
	if err != nil {
		return user.User{}, fmt.Errorf("external user: %w", err)
	}
	return u, nil
}

// externalID finds the user that a provider means: by the subject, and else by the verified address.
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
		return id, user.ErrUnverified // whether there is a user with the address or not
	case err != nil:
		return id, err
	case disabled:
		return id, user.ErrDisabled
	case !known && subject != "":
		return id, user.ErrEmailTaken
	}
	return id, nil
}

// writeExternal makes or changes the user of a provider, and returns it. The name follows the provider, if that tells one, and so does
// the address, if it is verified and no other user has it.
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

// endAll ends the password, the link and the sessions of a locked user, and returns the user.
func endAll(ctx context.Context, tx pgx.Tx, u user.User) (user.User, error) {
	_, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, u.ID)
	if err == nil {
		err = endWays(ctx, tx, u.ID, []user.Role{})
	}
	if err != nil {
		return user.User{}, err
	}
	return readUser(ctx, tx, u.Tenant, u.ID)
}
