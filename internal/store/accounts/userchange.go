package accounts

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// ChangeUser changes a user and returns it. A new role is in force with the next request; a user who is disabled is signed out
// everywhere. Either ends a link that was not used, and a role that the maker of the password's link could not give ends the
// password and the sessions. The caller by, nil for the operator, needs every scope of the role that the user has, and of the role
// that the user gets, or it is a [*push.ScopeError]. There may be no such user, [push.ErrNotFound], or no other admin who is not
// disabled, [user.ErrLastAdmin].
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
			return auditlog.Record(ctx, tx, tenant, push.ActUserChange, id.String(), d)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("change user: %w", err)
	}
	return u, nil
}

// writeUser writes a change of a locked user, with what it ends, and returns the user.
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
		if err := endWays(ctx, tx, before.ID, change.Role.AtLeast()); err != nil {
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

func endLink(ctx context.Context, tx pgx.Tx, id uuid.UUID) error {
	_, err := tx.Exec(ctx, `UPDATE users SET link_hash = NULL, link_role = NULL, link_expires_at = NULL WHERE id = $1`, id)
	return err
}

// endWays ends the link of a locked user. It ends the password and the sessions too, unless the maker of the password's link could
// give one of these roles: whoever made the link may know the password, and gets no role with it that the maker could not give.
func endWays(ctx context.Context, tx pgx.Tx, id uuid.UUID, unless []user.Role) error {
	if err := endLink(ctx, tx, id); err != nil {
		return err
	}
	tag, err := tx.Exec(ctx, `UPDATE users SET password_hash = NULL, password_set_at = NULL, password_role = NULL WHERE id = $1 AND password_role <> ALL ($2::text[])`, id, unless)
	if err == nil && tag.RowsAffected() > 0 {
		_, err = tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, id)
	}
	return err
}

// userDifference shows what a user may do, who vouches for the user, and that the names differ: these are personal.
func userDifference(from, to user.User) auditlog.Difference {
	d := auditlog.Difference{}
	d.Show("role", from.Role, to.Role)
	d.Show("disabled", from.DisabledAt != nil, to.DisabledAt != nil)
	d.Show("external", from.External, to.External)
	d.Hide("password", from.HasPassword, to.HasPassword)
	d.Hide("name", from.Name, to.Name)
	if from.Email != "" { // the user was there
		d.Hide("email", from.Email, to.Email)
	}
	return d
}

// keepAdmin makes a change of a locked user, unless the tenant had an admin before it, and has none after it.
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

// DeleteUser removes a user with the sessions. It fails as ChangeUser does.
func (s *Store) DeleteUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID) error {
	err := s.changeUsers(ctx, tenant, func(ctx context.Context, tx pgx.Tx, earlier int) error {
		before, err := lockUser(ctx, tx, tenant, id, by)
		if earlier > 0 && errors.Is(err, pgx.ErrNoRows) {
			return nil // an earlier run has removed it
		}
		if err != nil {
			return err
		}
		return keepAdmin(ctx, tx, before, func() error {
			if _, err := tx.Exec(ctx, `DELETE FROM users WHERE id = $1`, id); err != nil {
				return err
			}
			return auditlog.Record(ctx, tx, tenant, push.ActUserDelete, id.String(), nil)
		})
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// LinkUser gives a user another link to set a password with, for [user.LinkLifetime]; an earlier one ends. The caller by, nil for the
// operator, needs every scope of the user's role, or it is a [*push.ScopeError]. There may be no such user, [push.ErrNotFound], or the
// user is disabled, [user.ErrDisabled], or belongs to the OIDC provider, [user.ErrExternal]. The tenant [uuid.Nil] is any.
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
			d := auditlog.Difference{}
			d.Show("link", nil, user.LinkID(link))
			return auditlog.Record(ctx, tx, u.Tenant, push.ActUserLink, id.String(), d)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("link user: %w", err)
	}
	return u, nil
}
