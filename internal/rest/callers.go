package rest

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

type callerKey struct{}

// WithCaller returns a context for requests that another part of this program makes for a known caller, such as a user who has
// signed in. These requests need no key. A request from outside never has such a context.
func WithCaller(ctx context.Context, c push.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// knownCaller returns the caller in the context, if there is one. The error reports a missing scope.
func knownCaller(r *http.Request, scope string) (c push.Caller, known bool, err error) {
	c, known = r.Context().Value(callerKey{}).(push.Caller)
	if known && scope != "" && !c.May(scope) {
		err = &push.ScopeError{Scope: scope, Detail: "your role lacks the scope " + scope}
	}
	return c, known, err
}

// admit finds the caller before anything else of the request is read, and charges the limits of callers, including callers
// without a key or the scope.
func (a *API) admit(rec *responseRecorder, c *Call, scope string) error {
	limits := &a.cfg.Callers
	limited := len(limits.PerIP)+len(limits.PerKey) > 0
	address := func() string { return a.clientAddress(c.Request) }
	caller, known, err := knownCaller(c.Request, scope)
	if !known {
		if key, has := bearer(c.Request); limited && has && !a.keys.remembers(sha256.Sum256([]byte(key))) {
			// Looking up the key costs a query. A caller beyond its limit does not reach it.
			if err := a.limit(c, false, address(), uuid.Nil); err != nil {
				return err
			}
		}
		caller, err = a.keys.caller(c.Request, address, scope)
	}
	c.Caller, rec.tenant, rec.key, rec.user = caller, caller.Tenant, caller.Key, caller.User
	if err == nil {
		c.act()
		a.cfg.Neighbours.Seen(caller.Tenant)
	}
	if limited {
		subject := caller.Key
		if known {
			subject = caller.User // users have the limits of a key
		}
		if tooFast := a.limit(c, true, address(), subject); tooFast != nil {
			return tooFast
		}
	}
	return err
}

// act makes the caller the actor of all changes of the request.
func (c *Call) act() {
	if c.Request.Method == http.MethodGet || c.Request.Method == http.MethodHead {
		return
	}
	actor := c.Caller.Actor()
	c.Request, c.Writer.Whole = c.Request.WithContext(push.WithActor(c.Request.Context(), actor)), push.WithActor(c.Writer.Whole, actor)
}

// miss answers a request to an unknown path or method. Below /v1, it counts like any other request, against its
// address and its key if that is known, but needs no key: the paths are not secret. All callers of unknown paths take
// turns, like one tenant.
func (a *API) miss(rec *responseRecorder, r *http.Request, answer *Refusal) {
	limits := &a.cfg.Callers
	var tooFast error
	if counts := r.URL.Path == "/v1" || strings.HasPrefix(r.URL.Path, "/v1/"); counts {
		c := &Call{Writer: rec, Request: r}
		if len(limits.PerKey) > 0 {
			tooFast = a.admit(rec, c, "")
		} else {
			tooFast = a.limit(c, true, a.clientAddress(r), uuid.Nil)
		}
	}
	if found := (*Refusal)(nil); errors.As(tooFast, &found) && found.Kind == RateLimited {
		answer = found
	}
	// Nothing is read or written within the turn, because the connection may be slow.
	noTurn := a.cfg.Computing.Do(r.Context(), uuid.Nil, func() error { time.Sleep(missPause); return nil })
	if noTurn != nil {
		answer = &Refusal{Kind: RateLimited, Detail: "too many requests to unknown paths are in progress", header: http.Header{"Retry-After": {"1"}}}
	}
	a.fail(rec, r, answer)
}

// missPause is the time of each turn, so that at most a thousand such requests a second are answered for each processor.
const missPause = time.Millisecond

// limit reads or charges the limits of a request, writes their state to the headers, and refuses the request if
// a limit does.
func (a *API) limit(c *Call, charge bool, address string, key uuid.UUID) error {
	rules, names := a.cfg.Callers.rules(address, key)
	if len(rules) == 0 || a.cfg.Callers.Limiter == nil {
		return nil
	}
	ask := callerLimiter.Peek
	if charge {
		ask = callerLimiter.Take
	}
	d, err := ask(a.cfg.Callers.Limiter, c.Request.Context(), callersOwner, 1, rules...)
	if err != nil {
		if charge && a.cfg.Callers.Skipped != nil {
			a.cfg.Callers.Skipped()
		}
		return nil
	}
	policy, state := standings(rules, names, d)
	h := c.Writer.Header()
	h["Ratelimit-Policy"], h["Ratelimit"] = []string{policy}, []string{state}
	if d.Allowed {
		return nil
	}
	return limited(rules, names, d)
}

func (a *API) clientAddress(r *http.Request) string { return a.cfg.Callers.ClientAddress(r) }
