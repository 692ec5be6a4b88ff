package accounts

import (
	"context"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// Credentials returns the users who can sign in with an email address, and their password hashes, the most recently
// set password first. The users may belong to several tenants; tenantName selects one, "" selects all.
func (s *Store) Credentials(ctx context.Context, email, tenantName string) (all []user.Credential, err error) {
	err = s.db.Read(ctx, uuid.Nil, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+`, u.password_hash`+usersAndTenants+`
			WHERE u.email = $1 AND ($2 = '' OR t.name = $2) AND u.disabled_at IS NULL AND t.deleting_at IS NULL AND u.password_hash IS NOT NULL AND (u.issuer IS NULL OR $3)
			ORDER BY u.password_set_at DESC, u.id`, email, tenantName, s.db.Cfg.ExternalPasswords)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[user.Credential])
		return err
	})
	return all, err
}

// usableLink selects the user of a link that can still be used. Argument $2 is whether users of the OIDC provider may
// have passwords.
const usableLink = `u.link_hash = $1 AND u.link_expires_at > clock_timestamp() AND u.disabled_at IS NULL AND (u.issuer IS NULL OR $2)
	AND EXISTS (SELECT FROM tenants WHERE id = u.tenant_id AND deleting_at IS NULL)`

// UserByLink returns the user of a link that can still be used, or [push.ErrNotFound]. It does not use up the link.
func (s *Store) UserByLink(ctx context.Context, link [32]byte) (u user.User, err error) {
	err = s.db.Read(ctx, uuid.Nil, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT `+userColumns+usersAndTenants+`WHERE `+usableLink, link[:], s.db.Cfg.ExternalPasswords)
		u, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[user.User])
		return err
	})
	return u, err
}

// SetPassword uses up a link to store the hash of a new password, and ends the user's sessions. The audit log names
// the link as the actor. SetPassword returns [push.ErrNotFound] if the link was used or is no longer valid.
func (s *Store) SetPassword(ctx context.Context, link [32]byte, phc string) (u user.User, err error) {
	owner, err := s.UserByLink(ctx, link)
	if err != nil {
		return user.User{}, err
	}
	ctx = push.WithActor(ctx, push.Actor{Type: push.ActorLink, ID: user.LinkID(link)})
	err = s.db.Change(ctx, owner.Tenant, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `UPDATE users u SET password_hash = $3, password_set_at = clock_timestamp(), password_role = link_role, link_hash = NULL, link_role = NULL, link_expires_at = NULL WHERE `+usableLink, link[:], s.db.Cfg.ExternalPasswords, phc)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				if earlier == 0 {
					return pgx.ErrNoRows
				}
				// An earlier run may have used the link.
				return tx.QueryRow(ctx, `SELECT FROM users WHERE id = $1 AND password_hash = $2`, owner.ID, phc).Scan()
			}
			if _, err = tx.Exec(ctx, `DELETE FROM sessions WHERE user_id = $1`, owner.ID); err != nil {
				return err
			}
			return auditlogs.Record(ctx, tx, owner.Tenant, auditlog.UserChange, owner.ID.String(), auditlogs.Difference{"password": {Changed: true}})
		})
	})
	if err != nil {
		return user.User{}, fmt.Errorf("set password: %w", err)
	}
	owner.HasPassword, owner.LinkEndsAt = true, nil
	return owner, nil
}
