package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// sessionColumns are the columns of [user.Session], of sessions s and users u.
const sessionColumns = `s.id, s.user_id, u.tenant_id, s.created_at, s.last_seen_at, s.expires_at, s.address, s.user_agent`

// expiredAtOnce is the number of expired sessions that are deleted when a session begins.
const expiredAtOnce = 100

// BeginSession stores the session of a user who signs in now. It returns [push.ErrNotFound] if there is no such user,
// the user is disabled, or the password has changed since it was checked. It ends the least recently seen sessions
// beyond [user.MaxSessions].
func (s *Store) BeginSession(ctx context.Context, tenant uuid.UUID, n user.NewSession) (v user.Session, err error) {
	id := uuid.New()
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// This locks the user row, so that a concurrent disable or password change also ends this session.
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
				{`expires_at < clock_timestamp() AND user_id <> $1 ORDER BY expires_at LIMIT $2 FOR UPDATE SKIP LOCKED`, n.User, expiredAtOnce},
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

// FindSession returns the session with this token hash, its data, and its user in the current state. It returns
// [push.ErrNotFound] if the session has ended, the user is disabled, or the tenant is being deleted.
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

// SaveSession stores the data and the new expiry of a session. If the data is unchanged, it writes at most once a
// minute. It does nothing for a session that was deleted.
func (s *Store) SaveSession(ctx context.Context, tenant uuid.UUID, hash [32]byte, data []byte, expires time.Time) error {
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			UPDATE sessions SET data = $2, expires_at = $3, last_seen_at = clock_timestamp()
			WHERE token_hash = $1 AND (data <> $2 OR last_seen_at < clock_timestamp() - interval '1 minute')`, hash[:], data, expires)
		return err
	})
}

// DropSession ends the session with this token hash, if there is one.
func (s *Store) DropSession(ctx context.Context, hash [32]byte) error {
	return s.db.Change(ctx, uuid.Nil, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `DELETE FROM sessions WHERE token_hash = $1`, hash[:])
		return err
	})
}

// Sessions lists the active sessions of a tenant's user, the most recently seen first. The caller must be the user or
// have every scope of the user's role, or it gets a [*push.ScopeError]; nil is the operator. If there is no such
// user, Sessions returns [push.ErrNotFound].
func (s *Store) Sessions(ctx context.Context, by *push.Caller, tenant, of uuid.UUID) (all []user.Session, err error) {
	err = s.db.Snapshot(ctx, tenant, func(ctx context.Context, tx pgx.Tx) error { // one snapshot for the role and its sessions
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

// EndSessions ends one session of a tenant's user, or all of them for [uuid.Nil], and returns the number of sessions
// that it ended. It fails like [Store.Sessions]. A session that has already ended is not an error.
func (s *Store) EndSessions(ctx context.Context, by *push.Caller, tenant, of, session uuid.UUID) (ended int, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			// BeginSession locks the same row until its session is committed.
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
			return auditlogs.Record(ctx, tx, tenant, auditlog.UserEndSessions, of.String(), nil)
		})
	})
	if err != nil {
		return 0, fmt.Errorf("end sessions: %w", err)
	}
	return ended, nil
}
