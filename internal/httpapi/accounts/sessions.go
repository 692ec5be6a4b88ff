package accounts

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

// sessionView is a session of a user of the console as the API shows it.
type sessionView struct {
	ID         string `json:"id" format:"uuid" doc:"The id is not secret, and gives no access."`
	CreatedAt  string `json:"created_at" format:"date-time" doc:"The time of the sign-in."`
	LastSeenAt string `json:"last_seen_at" format:"date-time" doc:"Accurate to about a minute."`
	ExpiresAt  string `json:"expires_at" format:"date-time" doc:"The end of the session, unless it is used before."`
	Address    string `json:"address" doc:"The address at the sign-in."`
	UserAgent  string `json:"user_agent" doc:"The first 200 bytes of the browser's User-Agent."`
}

type sessionsView struct {
	Sessions []sessionView `json:"sessions" doc:"The open sessions, the last seen first: at most 50."`
}

type endedView struct {
	Ended int `json:"ended" doc:"The number of sessions that were ended."`
}

func sessionViewOf(s user.Session) sessionView {
	return sessionView{
		ID: s.ID.String(), CreatedAt: rest.Stamp(s.CreatedAt), LastSeenAt: rest.Stamp(s.LastSeenAt), ExpiresAt: rest.Stamp(s.ExpiresAt), Address: s.Address, UserAgent: s.UserAgent,
	}
}

// ownOrWrite returns an error unless the sessions belong to the caller, or the caller may write users.
func ownOrWrite(c *rest.Call, of uuid.UUID) error {
	if of == c.Caller.User && of != uuid.Nil || c.Caller.May(push.ScopeUsersWrite) {
		return nil
	}
	return &push.ScopeError{Scope: push.ScopeUsersWrite, Detail: "the sessions of others need the scope " + push.ScopeUsersWrite}
}

func (h *users) listSessions(c *rest.Call) error {
	return c.ByID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		if err := ownOrWrite(c, id); err != nil {
			return nil, err
		}
		all, err := h.store.Sessions(ctx, &c.Caller, tenant, id)
		return sessionsView{rest.ViewsOf(all, sessionViewOf)}, err
	})
}

func (h *users) endSessions(c *rest.Call) error {
	return c.ByID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		if err := ownOrWrite(c, id); err != nil {
			return nil, err
		}
		n, err := h.store.EndSessions(ctx, &c.Caller, tenant, id, uuid.Nil)
		return endedView{n}, err
	})
}

func (h *users) endSession(c *rest.Call) error {
	if err := ownOrWrite(c, c.ID); err != nil {
		return err
	}
	if c.Part == uuid.Nil { // which would mean all sessions
		return rest.NoSuch("session", push.ErrNotFound)
	}
	n, err := h.store.EndSessions(c.Request.Context(), &c.Caller, c.Caller.Tenant, c.ID, c.Part)
	switch {
	case err != nil:
		return rest.NoSuch("user", err)
	case n == 0:
		return rest.NoSuch("session", push.ErrNotFound)
	}
	c.Writer.WriteHeader(http.StatusNoContent)
	return nil
}
