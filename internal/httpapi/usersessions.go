package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
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
		ID: s.ID.String(), CreatedAt: stamp(s.CreatedAt), LastSeenAt: stamp(s.LastSeenAt), ExpiresAt: stamp(s.ExpiresAt), Address: s.Address, UserAgent: s.UserAgent,
	}
}

// ownOrWrite lets users see and end their own sessions, and others only if they may write users.
func ownOrWrite(c *call, of uuid.UUID) error {
	if of == c.caller.User && of != uuid.Nil || c.caller.May(push.ScopeUsersWrite) {
		return nil
	}
	return &push.ScopeError{Scope: push.ScopeUsersWrite, Detail: "the sessions of others need the scope " + push.ScopeUsersWrite}
}

func (h *users) listSessions(c *call) error {
	return c.byID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		if err := ownOrWrite(c, id); err != nil {
			return nil, err
		}
		all, err := h.store.Sessions(ctx, &c.caller, tenant, id)
		return sessionsView{viewsOf(all, sessionViewOf)}, err
	})
}

func (h *users) endSessions(c *call) error {
	return c.byID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		if err := ownOrWrite(c, id); err != nil {
			return nil, err
		}
		n, err := h.store.EndSessions(ctx, &c.caller, tenant, id, uuid.Nil)
		return endedView{n}, err
	})
}

func (h *users) endSession(c *call) error {
	if err := ownOrWrite(c, c.id); err != nil {
		return err
	}
	if c.part == uuid.Nil { // which would be all of them
		return noSuch("session", push.ErrNotFound)
	}
	n, err := h.store.EndSessions(c.r.Context(), &c.caller, c.caller.Tenant, c.id, c.part)
	switch {
	case err != nil:
		return noSuch("user", err)
	case n == 0:
		return noSuch("session", push.ErrNotFound)
	}
	c.w.WriteHeader(http.StatusNoContent)
	return nil
}
