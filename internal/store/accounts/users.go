package accounts

import (
	"context"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// userColumns are the columns of [user.User], of users u and tenants t.
const userColumns = `u.id, u.tenant_id, t.name, t.pending_cap, t.recipients_cap, t.audience_cap, u.email, u.name, u.role, u.password_hash IS NOT NULL, u.issuer IS NOT NULL, u.disabled_at, u.created_at, u.last_sign_in_at, ` +
	`CASE WHEN u.link_expires_at > clock_timestamp() THEN u.link_expires_at END`

const usersAndTenants = ` FROM users u JOIN tenants t ON t.id = u.tenant_id `

// readUser reads a user of a tenant; [uuid.Nil] is any tenant.
func readUser(ctx context.Context, q pg.Querier, tenant, id uuid.UUID) (user.User, error) {
	rows, _ := q.Query(ctx, `SELECT `+userColumns+usersAndTenants+`WHERE u.id = $1 AND ($2::uuid IS NULL OR u.tenant_id = $2)`, id, zeronull.UUID(tenant))
	return pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[user.User])
}

// lockUser locks a user of a tenant, and returns the user as of now; [uuid.Nil] is any tenant. The caller needs every
// scope of the user's present role, or it gets a [*push.ScopeError]. Every change that a caller makes to a user goes
// through lockUser.
func lockUser(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, by *push.Caller) (user.User, error) {
	if err := tx.QueryRow(ctx, `SELECT FROM users WHERE id = $1 AND ($2::uuid IS NULL OR tenant_id = $2) FOR UPDATE`, id, zeronull.UUID(tenant)).Scan(); err != nil {
		return user.User{}, err
	}
	u, err := readUser(ctx, tx, tenant, id)
	if err != nil {
		return user.User{}, err
	}
	return u, user.CheckRole(by, u.Role)
}

// changeUsers serialises changes to a tenant's users, so that the count and the admins cannot change while work runs.
// earlier is the number of earlier runs of work; one of them may have been committed.
func (s *Store) changeUsers(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, tx pgx.Tx, earlier int) error) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, `SELECT FROM tenants WHERE id = $1 FOR NO KEY UPDATE`, tenant); err != nil {
				return err
			}
			return work(ctx, tx, earlier)
		})
	})
}

// CreateUser creates a user with a link for setting a password, which is valid for [user.LinkLifetime]. The errors
// are [user.ErrTooMany] if the tenant has the maximum number of users, [user.ErrEmailTaken], and a [*push.ScopeError]
// if the caller lacks a scope of the role.
func (s *Store) CreateUser(ctx context.Context, n user.New) (u user.User, err error) {
	if err := user.CheckRole(n.By, n.Role); err != nil {
		return user.User{}, err
	}
	id := uuid.New()
	err = s.changeUsers(ctx, n.Tenant, func(ctx context.Context, tx pgx.Tx, _ int) error {
		if err := checkUserLimit(ctx, tx, n.Tenant, id, n.Most); err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO users (id, tenant_id, email, name, role, link_hash, link_role, link_expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, clock_timestamp() + $8::interval) ON CONFLICT (id) DO NOTHING`,
			id, n.Tenant, n.Email, n.Name, n.Role, n.Link[:], user.MaxRole(n.By), user.LinkLifetime)
		if pg.HasCode(err, pg.UniqueViolation) {
			return user.ErrEmailTaken
		}
		if err != nil {
			return err
		}
		if u, err = readUser(ctx, tx, n.Tenant, id); err != nil || tag.RowsAffected() == 0 { // an earlier run created the user
			return err
		}
		d := userDifference(user.User{}, u)
		d.Show("link", nil, user.LinkID(n.Link))
		return auditlogs.Record(ctx, tx, n.Tenant, auditlog.UserCreate, id.String(), d)
	})
	if err != nil {
		return user.User{}, fmt.Errorf("create user: %w", err)
	}
	return u, nil
}

// checkUserLimit returns [user.ErrTooMany] if the tenant has most users besides id; 0 is no limit.
func checkUserLimit(ctx context.Context, tx pgx.Tx, tenant, id uuid.UUID, most int) error {
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
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		u, err = readUser(ctx, c, tenant, id)
		return err
	})
	return u, err
}

// UserPage returns up to limit of a tenant's users after a position, the oldest first.
func (s *Store) UserPage(ctx context.Context, tenant uuid.UUID, after user.Position, limit int) (page user.Page, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
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

// Users lists the users of a tenant, the oldest first; [uuid.Nil] is all tenants.
func (s *Store) Users(ctx context.Context, tenant uuid.UUID) ([]user.User, error) {
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[user.User], `SELECT `+userColumns+usersAndTenants+`WHERE $1::uuid IS NULL OR u.tenant_id = $1 ORDER BY u.created_at, u.id`, zeronull.UUID(tenant))
}
