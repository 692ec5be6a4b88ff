package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlogs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// ChangeUser changes a user and returns it. A new role applies from the next request on. Disabling a user ends all of
// the user's sessions. A new role, or disabling, also ends an unused link. A new role ends the password and the
// sessions too, if the maker of the password's link could not have given that role.
//
// The caller needs every scope of the user's present role and of the new one, or it gets a [*push.ScopeError]; nil is
// the operator. The other errors are [push.ErrNotFound], and [user.ErrLastAdmin] if no enabled admin would remain.
func (s *Store) ChangeUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID, change user.Change) (u user.User, err error) {
	err = s.changeUsers(ctx, tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		before, err := lockUser(ctx, tx, tenant, id, by)
		if err != nil {
			return err
		}
		if change.Role != nil {
			if err := user.CheckRole(by, *change.Role); err != nil {
				return err
			}
		}
		return keepAdmin(ctx, tx, before, func() error {
			if u, err = writeUser(ctx, tx, before, change); err != nil {
				return err
			}
			d := userDifference(before, u)
			if len(d) == 0 {
				return nil
			}
			return auditlogs.Record(ctx, tx, tenant, auditlog.UserChange, id.String(), d)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("change user: %w", err)
	}
	return u, nil
}

// writeUser writes a change of a locked user, ends the links, passwords and sessions that it makes invalid, and
// returns the user.
func writeUser(ctx context.Context, tx pgx.Tx, before user.User, change user.Change) (user.User, error) {
	_, err := tx.Exec(ctx, `
		UPDATE users SET name = coalesce($2, name), role = coalesce($3, role),
			disabled_at = CASE WHEN $4::bool IS NULL THEN disabled_at WHEN $4 THEN coalesce(disabled_at, clock_timestamp()) END
		WHERE id = $1`, before.ID, change.Name, change.Role, change.Disabled)
	if err != nil {
		return user.User{}, err
	}
	off := change.Disabled != nil && *change.Disabled
	if change.Role != nil && *change.Role != before.Role {
		if err := endSignInUnless(ctx, tx, before.ID, change.Role.AtLeast()); err != nil {
			return user.User{}, err
		}
	} else if off {
		if err := endLink(ctx, tx, before.ID); err != nil {
			return user.User{}, err
		}
	}
	if off {
		if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, before.ID); err != nil {
			return user.User{}, err
		}
	}
	return readUser(ctx, tx, before.Tenant, before.ID)
}

// endLink deletes the link of a locked user.
func endLink(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `UPDATE users SET link_hash = NULL, link_role = NULL, link_expires_at = NULL WHERE id = $1`, id)
	return err
}

// endSignInUnless ends the link of a locked user. It also ends the password and the sessions, unless the maker of the
// password's link could give one of the roles. The maker may know the password, and must not gain a role through it.
func endSignInUnless(ctx context.Context, tx pgx.Tx, id uuid.UUID, unless []user.Role) error {
	if err := endLink(ctx, tx, id); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE users SET password_hash = NULL, password_set_at = NULL, password_role = NULL WHERE id = $1 AND password_role <> ALL ($2::text[])`, id, unless)
	if err == nil && tag.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, id)
	}
	return err
}

// userDifference returns the audit log's description of a change of a user. The name and the email address are
// personal: it shows only that they changed.
func userDifference(from, to user.User) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Show("role", from.Role, to.Role)
	d.Show("disabled", from.DisabledAt != nil, to.DisabledAt != nil)
	d.Show("external", from.External, to.External)
	d.Hide("password", from.HasPassword, to.HasPassword)
	d.Hide("name", from.Name, to.Name)
	if from.Email != "" { // not a new user
		d.Hide("email", from.Email, to.Email)
	}
	return d
}

// keepAdmin runs the change of a locked user, and returns [user.ErrLastAdmin] if the user was an enabled admin and
// the tenant has none after it.
func keepAdmin(ctx context.Context, tx pgx.Tx, before user.User, change func() error) error {
	if err := change(); err != nil || before.Role != user.Admin || before.DisabledAt != nil {
		return err
	}
	var is bool
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE tenant_id = $1 AND role = 'admin' AND disabled_at IS NULL)`, before.Tenant).Scan(&is)
	if err == nil && !is {
		return user.ErrLastAdmin
	}
	return err
}

// DeleteUser deletes a user and the user's sessions. It fails like [Store.ChangeUser].
func (s *Store) DeleteUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID) error {
	err := s.changeUsers(ctx, tenant, func(ctx context.Context, tx pgx.Tx, earlier int) error {
		before, err := lockUser(ctx, tx, tenant, id, by)
		if earlier > 0 && errors.Is(err, pgx.ErrNoRows) {
			return nil // an earlier run deleted it
		}
		if err != nil {
			return err
		}
		return keepAdmin(ctx, tx, before, func() error {
			if _, err := tx.Exec(ctx, `DELETE FROM users WHERE id = $1`, id); err != nil {
				return err
			}
			return auditlogs.Record(ctx, tx, tenant, auditlog.UserDelete, id.String(), nil)
		})
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// LinkUser replaces a user's link for setting a password. The link is valid for [user.LinkLifetime]. The caller needs
// every scope of the user's role, or it gets a [*push.ScopeError]; nil is the operator. The other errors are
// [push.ErrNotFound], [user.ErrDisabled], and [user.ErrExternal] if the user signs in with the OIDC provider. The
// tenant [uuid.Nil] is any tenant.
func (s *Store) LinkUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID, link [32]byte) (u user.User, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			before, err := lockUser(ctx, tx, tenant, id, by)
			switch {
			case err != nil:
				return err
			case before.External && !s.db.Cfg.ExternalPasswords:
				return user.ErrExternal
			case before.DisabledAt != nil:
				return user.ErrDisabled
			}
			if _, err := tx.Exec(ctx, `UPDATE users SET link_hash = $2, link_role = $3, link_expires_at = clock_timestamp() + $4::interval WHERE id = $1`,
				id, link[:], user.MaxRole(by), user.LinkLifetime); err != nil {
				return err
			}
			if u, err = readUser(ctx, tx, tenant, id); err != nil {
				return err
			}
			d := auditlogs.Difference{}
			d.Show("link", nil, user.LinkID(link))
			return auditlogs.Record(ctx, tx, u.Tenant, auditlog.UserLink, id.String(), d)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("link user: %w", err)
	}
	return u, nil
}
