package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

const userColumns = `u.id, u.tenant_id, t.name, t.pending_cap, t.recipients_cap, t.audience_cap, u.email, u.name, u.role, u.password_hash IS NOT NULL, u.issuer IS NOT NULL, u.disabled_at, u.created_at, u.last_sign_in_at, ` +
	`CASE WHEN u.link_expires_at > clock_timestamp() THEN u.link_expires_at END`

const usersAndTenants = ` FROM users u JOIN tenants t ON t.id = u.tenant_id `

// readUser reads a user of a tenant, or of any for [uuid.Nil].
func readUser(ctx context.Context, q querier, tenant, id uuid.UUID) (user.User, error) {
	rows, _ := q.Query(ctx, `SELECT `+userColumns+usersAndTenants+`WHERE u.id = $1 AND ($2::uuid IS NULL OR u.tenant_id = $2)`, id, zeronull.UUID(tenant))
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[user.User])
}

// changeUsers has one change of a tenant's users go on at a time: how many they are, and which of them are admins, is as
// it was when work reads it.
func (s *Store) changeUsers(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, tx pgx.Tx, earlier int) error) error {
	return s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, tenant); err != nil {
				return err
			}
			return work(ctx, tx, earlier)
		})
	})
}

// CreateUser makes a user, who has a link to set a password with for [user.LinkLifetime]. The tenant may have as many as it
// may, [user.ErrTooMany], or one with this email, [user.ErrEmailTaken].
func (s *Store) CreateUser(ctx context.Context, n user.New) (u user.User, err error) {
	id := uuid.New()
	err = s.changeUsers(ctx, n.Tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		if err := userFits(ctx, tx, n.Tenant, id, n.Most); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO users (id, tenant_id, email, name, role, link_hash, link_expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7::interval) ON CONFLICT (id) DO NOTHING`,
			id, n.Tenant, n.Email, n.Name, n.Role, n.Link[:], user.LinkLifetime)
		if hasCode(err, uniqueViolation) {
			return user.ErrEmailTaken
		}
		if err != nil {
			return err
		}
		if u, err = readUser(ctx, tx, n.Tenant, id); err != nil || tag.RowsAffected() == 0 { // an earlier run has made the user
			return err
		}
		return record(ctx, tx, n.Tenant, push.ActUserCreate, id.String(), userDifference(user.User{}, u))
	})
	if err != nil {
		return user.User{}, fmt.Errorf("create user: %w", err)
	}
	return u, nil
}

// userFits counts a tenant's users but for one.
func userFits(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, most int) error {
	if most == 0 {
		return nil
	}
	var others int
	err := tx.QueryRow(ctx, `SELECT count(*) FROM users WHERE tenant_id = $1 AND id <> $2`, tenant, id).Scan(&others)
	if err == nil && others >= most {
		return user.ErrTooMany
	}
	return err
}

// User returns a tenant's user, or [push.ErrNotFound].
func (s *Store) User(ctx context.Context, tenant, id uuid.UUID) (u user.User, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		u, err = readUser(ctx, c, tenant, id)
		return err
	})
	return u, err
}

// UserPage returns up to limit of a tenant's users behind a position, the oldest first.
func (s *Store) UserPage(ctx context.Context, tenant uuid.UUID, after user.Position, limit int) (page user.Page, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+usersAndTenants+`
			WHERE u.tenant_id = $1 AND (u.created_at, u.id) > ($2, $3) ORDER BY u.created_at, u.id LIMIT $4`,
			tenant, after.CreatedAt, after.ID, limit+1)
		users, err := pgx.CollectRows(rows, pgx.RowToStructByPos[user.User])
		if page = (user.Page{Users: users}); len(users) > limit {
			last := users[limit-1]
			page.Users, page.Next = users[:limit], &user.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		}
		return err
	})
	return page, err
}

// Users lists the users of one tenant, or of all for [uuid.Nil], the oldest first.
func (s *Store) Users(ctx context.Context, tenant uuid.UUID) ([]user.User, error) {
	return collect(ctx, s, pgx.RowToStructByPos[user.User], `SELECT `+userColumns+usersAndTenants+`WHERE $1::uuid IS NULL OR u.tenant_id = $1 ORDER BY u.created_at, u.id`, zeronull.UUID(tenant))
}

// ChangeUser changes a user and returns it. A new role is in force with the next request; one who is disabled is signed out
// everywhere. Either ends a link that was not used. There may be no such user, [push.ErrNotFound], or nobody but this one who
// is an admin and not disabled, [user.ErrLastAdmin].
func (s *Store) ChangeUser(ctx context.Context, tenant, id uuid.UUID, change user.Change) (u user.User, err error) {
	err = s.changeUsers(ctx, tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		return keepAdmin(ctx, tx, tenant, id, func() error {
			before, err := readUser(ctx, tx, tenant, id)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, `
				UPDATE users SET name = coalesce($3, name), role = coalesce($4, role),
					disabled_at = CASE WHEN $5::bool IS NULL THEN disabled_at WHEN $5 THEN coalesce(disabled_at, clock_timestamp()) END,
					link_hash = CASE WHEN $5 IS NOT TRUE AND coalesce($4, role) = role THEN link_hash END,
					link_expires_at = CASE WHEN $5 IS NOT TRUE AND coalesce($4, role) = role THEN link_expires_at END
				WHERE id = $1 AND tenant_id = $2`, id, tenant, change.Name, change.Role, change.Disabled)
			if err != nil {
				return err
			}
			if change.Disabled != nil && *change.Disabled {
				if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, id); err != nil {
					return err
				}
			}
			if u, err = readUser(ctx, tx, tenant, id); err != nil {
				return err
			}
			d := userDifference(before, u)
			if len(d) == 0 {
				return nil
			}
			return record(ctx, tx, tenant, push.ActUserChange, id.String(), d)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("change user: %w", err)
	}
	return u, nil
}

// userDifference shows what a user may do, who vouches for the user, and that the names differ: these are personal.
func userDifference(from, to user.User) difference {
	d := difference{}
	d.show("role", from.Role, to.Role)
	d.show("disabled", from.DisabledAt != nil, to.DisabledAt != nil)
	d.show("external", from.External, to.External)
	d.hide("name", from.Name, to.Name)
	if from.Email != "" { // the user was there
		d.hide("email", from.Email, to.Email)
	}
	return d
}

// keepAdmin makes a change of a user, unless the tenant had an admin before it, and has none after it.
func keepAdmin(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, change func() error) error {
	const isAdmin = `role = 'admin' AND disabled_at IS NULL`
	var was, is bool
	if err := tx.QueryRow(ctx, `SELECT `+isAdmin+` FROM users WHERE id = $1 AND tenant_id = $2 FOR UPDATE`, id, tenant).Scan(&was); err != nil {
		return err
	}
	if err := change(); err != nil || !was {
		return err
	}
	err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM users WHERE tenant_id = $1 AND `+isAdmin+`)`, tenant).Scan(&is)
	if err == nil && !is {
		return user.ErrLastAdmin
	}
	return err
}

// DeleteUser removes a user with the sessions. It fails as ChangeUser does.
func (s *Store) DeleteUser(ctx context.Context, tenant, id uuid.UUID) error {
	err := s.changeUsers(ctx, tenant, func(ctx context.Context, tx pgx.Tx, earlier int) error {
		err := keepAdmin(ctx, tx, tenant, id, func() error {
			if _, err := tx.Exec(ctx, `DELETE FROM users WHERE id = $1 AND tenant_id = $2`, id, tenant); err != nil {
				return err
			}
			return record(ctx, tx, tenant, push.ActUserDelete, id.String(), nil)
		})
		if earlier > 0 && errors.Is(err, pgx.ErrNoRows) {
			return nil // an earlier run has removed it
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	return nil
}

// LinkUser gives a user another link to set a password with, for [user.LinkLifetime]; an earlier one ends. There may be no
// such user, [push.ErrNotFound], or one who is disabled, [user.ErrDisabled]. The tenant [uuid.Nil] is any.
func (s *Store) LinkUser(ctx context.Context, tenant, id uuid.UUID, link [32]byte) (u user.User, err error) {
	err = s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `
				UPDATE users SET link_hash = $3, link_expires_at = clock_timestamp() + $4::interval
				WHERE id = $1 AND ($2::uuid IS NULL OR tenant_id = $2) AND disabled_at IS NULL`, id, zeronull.UUID(tenant), link[:], user.LinkLifetime)
			if err != nil {
				return err
			}
			if u, err = readUser(ctx, tx, tenant, id); err == nil && u.DisabledAt != nil {
				return user.ErrDisabled
			}
			if err != nil {
				return err
			}
			return record(ctx, tx, u.Tenant, push.ActUserLink, id.String(), nil)
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("link user: %w", err)
	}
	return u, nil
}
