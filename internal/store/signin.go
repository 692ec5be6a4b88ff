package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// Credential returns the user who signs in by an email, and what is kept of the password: "" if there is none. tenantName
// tells which one is meant where users of several tenants have this email; "" if that was not said. There may be no such
// user, or one who is disabled, or several: [push.ErrNotFound].
func (s *Store) Credential(ctx context.Context, email, tenantName string) (u user.User, phc string, err error) {
	err = s.read(ctx, uuid.Nil, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+`, coalesce(u.password_hash, '')`+usersAndTenants+`
			WHERE u.email = $1 AND ($2 = '' OR t.name = $2) AND u.disabled_at IS NULL AND t.deleting_at IS NULL LIMIT 2`, email, tenantName)
		found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct {
			user.User
			PHC string
		}])
		if errors.Is(err, pgx.ErrTooManyRows) {
			return pgx.ErrNoRows
		}
		u, phc = found.User, found.PHC
		return err
	})
	if err != nil {
		return user.User{}, "", err
	}
	return u, phc, nil
}

const linkOpens = `u.link_hash = $1 AND u.link_expires_at > clock_timestamp() AND u.disabled_at IS NULL AND EXISTS (SELECT FROM tenants WHERE id = u.tenant_id AND deleting_at IS NULL)`

// UserByLink returns the user of a link that can still be used, or [push.ErrNotFound]. It does not use it.
func (s *Store) UserByLink(ctx context.Context, link [32]byte) (u user.User, err error) {
	err = s.read(ctx, uuid.Nil, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+usersAndTenants+`WHERE `+linkOpens, link[:])
		u, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[user.User])
		return err
	})
	return u, err
}

// SetPassword uses a link to keep the hash of a new password, and ends the user's sessions. A link that was used, or cannot
// be used any more, is [push.ErrNotFound].
func (s *Store) SetPassword(ctx context.Context, link [32]byte, phc string) (u user.User, err error) {
	owner, err := s.UserByLink(ctx, link)
	if err != nil {
		return user.User{}, err
	}
	ctx = push.WithActor(ctx, push.Actor{Type: push.ActorUser, ID: owner.ID}) // for whom the link was made
	err = s.change(ctx, owner.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `UPDATE users u SET password_hash = $2, password_role = link_role, link_hash = NULL, link_role = NULL, link_expires_at = NULL WHERE `+linkOpens, link[:], phc)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				if earlier == 0 {
					return pgx.ErrNoRows
				}
				// An earlier run may have used the link: the hash has a salt of its own.
				return tx.QueryRow(ctx, `SELECT FROM users WHERE id = $1 AND password_hash = $2`, owner.ID, phc).Scan()
			}
			if _, err = tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, owner.ID); err != nil {
				return err
			}
			return record(ctx, tx, owner.Tenant, push.ActUserChange, owner.ID.String(), difference{"password": {Changed: true}})
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("set password: %w", err)
	}
	owner.HasPassword, owner.LinkEndsAt = true, nil
	return owner, nil
}

// ExternalUser returns the user whom an OIDC provider vouches for, with the role that it gives: the provider's word counts,
// also for the last admin; another role ends a link that was not used. One who comes for the first time is made, or is the one who has this email, if the provider has
// verified it; else that is [user.ErrEmailTaken]. The user may be disabled, [user.ErrDisabled], and the tenant may have as
// many as it may, [user.ErrTooMany].
func (s *Store) ExternalUser(ctx context.Context, e user.External) (u user.User, err error) {
	fresh := uuid.New()
	err = s.changeUsers(ctx, e.Tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		id, err := externalID(ctx, tx, e)
		if errors.Is(err, pgx.ErrNoRows) {
			id, err = fresh, userFits(ctx, tx, e.Tenant, fresh, e.Most)
		}
		if err != nil {
			return err
		}
		before, err := readUser(ctx, tx, e.Tenant, id)
		action := push.ActUserChange
		if errors.Is(err, pgx.ErrNoRows) {
			action, err = push.ActUserCreate, nil
		}
		if err != nil {
			return err
		}
		// The name follows the provider, if that tells one; and the email, unless another user has it.
		_, err = tx.Exec(ctx, `
			INSERT INTO users (id, tenant_id, email, name, role, issuer, subject) VALUES ($1, $2, $3, $4, $5, $6, $7)
			ON CONFLICT (id) DO UPDATE SET name = coalesce(nullif(excluded.name, ''), users.name), role = excluded.role, issuer = excluded.issuer, subject = excluded.subject,
				link_hash = CASE WHEN users.role = excluded.role THEN users.link_hash END,
				link_role = CASE WHEN users.role = excluded.role THEN users.link_role END,
				link_expires_at = CASE WHEN users.role = excluded.role THEN users.link_expires_at END,
				email = CASE WHEN EXISTS (SELECT FROM users o WHERE o.tenant_id = $2 AND o.email = $3) THEN users.email ELSE excluded.email END`,
			id, e.Tenant, e.Email, e.Name, e.Role, e.Issuer, e.Subject)
		if err != nil {
			return err
		}
		if u, err = readUser(ctx, tx, e.Tenant, id); err != nil {
			return err
		}
		if d := userDifference(before, u); len(d) > 0 {
			return record(ctx, tx, e.Tenant, action, id.String(), d)
		}
		return nil
	})
	if err != nil {
		return user.User{}, fmt.Errorf("external user: %w", err)
	}
	return u, nil
}

// externalID finds the user whom a provider means: by the subject, and else by the email.
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
	case err != nil:
		return id, err
	case disabled:
		return id, user.ErrDisabled
	case !known && (!e.EmailVerified || subject != ""):
		return id, user.ErrEmailTaken
	}
	return id, nil
}
