package console

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/alexedwards/scs/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// sessionStore stores the sessions of users. It returns [push.ErrNotFound] for a session that has ended.
type sessionStore interface {
	BeginSession(ctx context.Context, tenant uuid.UUID, n user.NewSession) (user.Session, error)
	FindSession(ctx context.Context, hash [32]byte) (user.Session, user.User, []byte, error)
	SaveSession(ctx context.Context, tenant uuid.UUID, hash [32]byte, data []byte, expires time.Time) error
	DropSession(ctx context.Context, hash [32]byte) error
}

// opened is the session of a request, found or new.
type opened struct {
	session user.Session
	user    user.User
	found   bool
	address string
	follows bool // the request is of a live page, not of a user action
}

type openedKey struct{}

// openedOf returns the session of a request; nil if it cannot have one.
func openedOf(ctx context.Context) *opened {
	o, _ := ctx.Value(openedKey{}).(*opened)
	return o
}

// newSessions returns the sessions of scs: what is in cookies, and when they end.
func (s *SignIn) newSessions() *scs.SessionManager {
	m := scs.New()
	m.Store = sessionsOf{s}
	m.Lifetime, m.IdleTimeout = s.cfg.Lifetime, s.cfg.Idle
	m.Cookie.Name, m.Cookie.Secure = s.cookieName("sendquota"), s.secure()
	m.Cookie.Path, m.Cookie.HttpOnly, m.Cookie.SameSite = "/", true, http.SameSiteLaxMode
	return m
}

// unreadable answers a request when its session cannot be read from Postgres.
func (s *SignIn) unreadable(at *frame.Site, w http.ResponseWriter, r *http.Request, err error) {
	s.cfg.Log.ErrorContext(r.Context(), "cannot read session", "error", err)
	w.Header().Set("Retry-After", "1")
	at.NewPage(w, r, frame.Visitor{}).Fail(&client.Problem{Title: "The database does not respond", Status: http.StatusServiceUnavailable,
		Detail: "Accepted messages are safe and will be sent when it responds again. Try again in a moment."})
}

// secure reports whether browsers come over https.
func (s *SignIn) secure() bool { return strings.HasPrefix(s.cfg.PublicURL, "https://") }

// cookieName binds a cookie to the host, where that can be: https://www.rfc-editor.org/rfc/rfc6265bis
func (s *SignIn) cookieName(name string) string {
	if s.secure() {
		return "__Host-" + name
	}
	return name
}

// Cookie is part of authenticator.
func (s *SignIn) Cookie(name, value string, seconds int, site http.SameSite) *http.Cookie {
	return &http.Cookie{Name: s.cookieName(name), Value: value, Path: "/", MaxAge: seconds, HttpOnly: true, SameSite: site, Secure: s.secure()}
}

// Wrap finds the session of each request that is for a page.
func (s *SignIn) Wrap(h http.Handler) http.Handler {
	pages := s.sessions.LoadAndSave(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, frame.Root+"/static/") || strings.HasPrefix(r.URL.Path, frame.Root+"/vendor/") {
			h.ServeHTTP(w, r)
			return
		}
		pages.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), openedKey{}, &opened{address: s.cfg.Address(r), follows: strings.HasSuffix(r.URL.Path, "/live")})))
	})
}

// SignedIn returns the user of the request's session, as the user is now.
func (s *SignIn) SignedIn(r *http.Request) (frame.Visitor, bool) {
	o := openedOf(r.Context())
	if o == nil || !o.found {
		return frame.Visitor{}, false
	}
	return frame.Visitor{Caller: o.user.Caller(), Name: cmp.Or(o.user.Name, o.user.Email), Role: string(o.user.Role), Session: o.session.ID}, true
}

// begin signs a user in with a new token. phc is the stored hash of the password that matched; empty for a sign-in without a password.
func (s *SignIn) begin(r *http.Request, u user.User, phc string) error {
	ctx := r.Context()
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	session, err := s.store.BeginSession(ctx, u.Tenant, user.NewSession{
		Hash: user.HashSession(s.sessions.Token(ctx)), User: u.ID, Password: phc, ExpiresAt: s.cfg.Now().Add(min(s.cfg.Idle, s.cfg.Lifetime)),
		Address: s.cfg.Address(r), UserAgent: user.TrimAgent(r.UserAgent()),
	})
	if err != nil {
		return errors.Join(err, s.sessions.Destroy(ctx))
	}
	*openedOf(ctx) = opened{session: session, user: u, found: true}
	s.cfg.Log.InfoContext(ctx, "signed in", "tenant", u.Tenant, "user", u.ID, "session", session.ID)
	return nil
}

// sessionsOf stores the sessions of scs in our store, by the hashes of their tokens.
type sessionsOf struct{ s *SignIn }

// tokenLength is the length of a token of scs: 32 bytes in base64.
const tokenLength = 43

// FindCtx is part of [scs.CtxStore].
func (o sessionsOf) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	if len(token) != tokenLength {
		return nil, false, nil // not a token, so skip the query
	}
	to := openedOf(ctx)
	if to == nil {
		to = &opened{}
	}
	session, u, data, err := o.s.findSession(ctx, to.address, user.HashSession(token))
	if errors.Is(err, push.ErrNotFound) || err == nil && len(data) == 0 { // without data, signing in was not finished
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	to.session, to.user, to.found = session, u, true
	return data, true, nil
}

// Maximum numbers of concurrent session lookups, in total and for one address, and the longest wait for one.
const (
	maxLookups    = 8
	addressesPart = maxLookups / 4
	lookupTime    = 5 * time.Second
)

// findSession reads a session within the share of the browser's address, so that invented cookies cannot use up Postgres.
func (s *SignIn) findSession(ctx context.Context, address string, hash [32]byte) (v user.Session, u user.User, data []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	lookup, err := s.lookups.Acquire(ctx, address, 1)
	if err != nil {
		return v, u, nil, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	defer lookup.Release()
	return s.store.FindSession(ctx, hash)
}

// CommitCtx is part of [scs.CtxStore]. It extends sessions; begin creates them. If it fails, the session only ends sooner.
func (o sessionsOf) CommitCtx(ctx context.Context, token string, data []byte, expires time.Time) error {
	of := openedOf(ctx)
	if of == nil || !of.found || of.follows {
		return nil
	}
	if err := o.s.store.SaveSession(ctx, of.user.Tenant, user.HashSession(token), data, expires); err != nil && ctx.Err() == nil {
		o.s.cfg.Log.WarnContext(ctx, "cannot extend session; it will end sooner", "session", of.session.ID, "error", err)
	}
	return nil
}

// DeleteCtx is part of [scs.CtxStore].
func (o sessionsOf) DeleteCtx(ctx context.Context, token string) error {
	if of := openedOf(ctx); of != nil {
		*of = opened{}
	}
	return o.s.store.DropSession(ctx, user.HashSession(token))
}

// Find is part of [scs.Store], which scs does not use.
func (o sessionsOf) Find(token string) ([]byte, bool, error) {
	return o.FindCtx(context.Background(), token)
}

// Commit is part of [scs.Store], which scs does not use.
func (o sessionsOf) Commit(token string, data []byte, expires time.Time) error {
	return o.CommitCtx(context.Background(), token, data, expires)
}

// Delete is part of [scs.Store], which scs does not use.
func (o sessionsOf) Delete(token string) error { return o.DeleteCtx(context.Background(), token) }
