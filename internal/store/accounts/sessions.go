package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlog"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

const sessionColumns = `s.id, s.user_id, u.tenant_id, s.created_at, s.last_seen_at, s.expires_at, s.address, s.user_agent`

// mostForgotten is how many sessions that have expired are forgotten when another one begins.
const mostForgotten = 100

// BeginSession keeps the session of a user who signs in now. There may be no such user, or the user is disabled, or has another
// password by now: [push.ErrNotFound]. If the user has more than [user.MaxSessions], those that were not seen for longest end.
func (s *Store) BeginSession(ctx context.Context, tenant uuid.UUID, n user.NewSession) (v user.Session, err error) {
	id := uuid.New()
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// The lock has those wait who disable the user, or set another password: the session is there when they end all.
			tag, err := tx.Exec(ctx, `UPDATE users SET last_sign_in_at = clock_timestamp() WHERE id = $1 AND tenant_id = $2 AND disabled_at IS NULL AND ($3 = '' OR password_hash = $3)`,
				n.User, tenant, n.Password)
			if err == nil && tag.RowsAffected() == 0 {
				err = pgx.ErrNoRows
			}
			if err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, `INSERT INTO sessions (token_hash, id, user_id, data, address, user_agent, expires_at) VALUES ($1, $2, $3, '', $4, $5, $6) ON CONFLICT (token_hash) DO NOTHING`,
				n.Hash[:], id, n.User, n.Address, n.UserAgent, n.ExpiresAt); err != nil {
				return err
			}
			for _, old := range []struct {
				which string
				arg   any
				n     int
			}{
				{`user_id = $1 ORDER BY last_seen_at DESC, token_hash OFFSET $2`, n.User, user.MaxSessions},
				{`expires_at < clock_timestamp() AND user_id <> $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`, n.User, mostForgotten},
			} {
				if _, err := tx.Exec(ctx, `DELETE FROM sessions WHERE token_hash = ANY (ARRAY(SELECT token_hash FROM sessions WHERE `+old.which+`))`, old.arg, old.n); err != nil {
					return err
				}
			}
			rows, _ := tx.Query(ctx, `SELECT `+sessionColumns+` FROM sessions s JOIN users u ON u.id = s.user_id WHERE s.id = $1`, id)
			v, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[user.Session])
			return err
		})
	})
	if err != nil {
		return user.Session{}, fmt.Errorf("begin session: %w", err)
	}
	return v, nil
}

// FindSession returns the session whose token has this hash, its data, and its user as that is now. If it has ended, or the
// user is disabled, it is [push.ErrNotFound].
func (s *Store) FindSession(ctx context.Context, hash [32]byte) (v user.Session, u user.User, data []byte, err error) {
	err = s.db.Read(ctx, uuid.Nil, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+`, `+sessionColumns+`, s.data FROM sessions s JOIN users u ON u.id = s.user_id JOIN tenants t ON t.id = u.tenant_id
			WHERE s.token_hash = $1 AND s.expires_at > clock_timestamp() AND u.disabled_at IS NULL AND t.deleting_at IS NULL`, hash[:])
		found, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[struct {
			user.User
			user.Session
			Data []byte
		}])
		v, u, data = found.Session, found.User, found.Data
		return err
	})
	return v, u, data, err
}

// SaveSession keeps the data of a session, and when it ends if it is not used before. One that has ended does not begin
// again. That it was used is written once a minute.
func (s *Store) SaveSession(ctx context.Context, tenant uuid.UUID, hash [32]byte, data []byte, expires time.Time) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			UPDATE sessions SET data = $2, expires_at = $3, last_seen_at = clock_timestamp()
			WHERE token_hash = $1 AND (data <> $2 OR last_seen_at < clock_timestamp() - interval '1 minute')`, hash[:], data, expires)
		return err
	})
}

// DropSession ends the session whose token has this hash, if there is one.
func (s *Store) DropSession(ctx context.Context, hash [32]byte) error {
	return s.db.Change(ctx, uuid.Nil, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `DELETE FROM sessions WHERE token_hash = $1`, hash[:])
		return err
	})
}

// Sessions lists the sessions of a tenant's user that go on, the one that was seen last first. The caller by, nil for the operator,
// is the user, or needs every scope of the user's role, or it is a [*push.ScopeError]. There may be no such user: [push.ErrNotFound].
func (s *Store) Sessions(ctx context.Context, by *push.Caller, tenant, of uuid.UUID) (all []user.Session, err error) {
	err = s.db.Snapshot(ctx, tenant, func(ctx context.Context, tx pgx.Tx) error { // a session of a role that is given meanwhile is not seen
		u, err := readUser(ctx, tx, tenant, of)
		if err == nil {
			err = user.CheckSessions(by, u)
		}
		if err != nil {
			return err
		}
		rows, _ := tx.Query(ctx, `SELECT `+sessionColumns+` FROM sessions s JOIN users u ON u.id = s.user_id
			WHERE s.user_id = $1 AND s.expires_at > clock_timestamp() ORDER BY s.last_seen_at DESC, s.id`, of)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[user.Session])
		return err
	})
	return all, err
}

// EndSessions ends a session of a tenant's user, or all of them for [uuid.Nil], and returns how many. It fails as Sessions does; a
// session that has ended is none.
func (s *Store) EndSessions(ctx context.Context, by *push.Caller, tenant, of, session uuid.UUID) (ended int, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// A session that begins holds the lock until it is there.
			u, err := lockUser(ctx, tx, tenant, of, nil)
			if err == nil {
				err = user.CheckSessions(by, u)
			}
			if err != nil {
				return err
			}
			tag, err := tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1 AND ($2::uuid = $3 OR id = $2)`, of, session, uuid.Nil)
			if ended = int(tag.RowsAffected()); err != nil || ended == 0 {
				return err
			}
			return auditlog.Record(ctx, tx, tenant, push.ActUserEndSessions, of.String(), nil)
		})
	})
	if err != nil {
		return 0, fmt.Errorf("end sessions: %w", err)
	}
	return ended, nil
}
