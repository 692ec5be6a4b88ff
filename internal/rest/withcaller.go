package rest

import (
	"context"
	"net/http"

	"github.com/sendquota/sendquota/internal/push"
)

type callerKey struct{}

// WithCaller returns a context for requests that a part of this program makes for a caller whom it knows, such as a user who has
// signed in. These requests need no key. One that comes from outside never has such a context.
func WithCaller(ctx context.Context, c push.Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// knownCaller is the caller of the context, if it has one, and whether the scope is one of its own.
func knownCaller(r *http.Request, scope string) (c push.Caller, known bool, err error) {
	c, known = r.Context().Value(callerKey{}).(push.Caller)
	if known && scope != "" && !c.May(scope) {
		err = &push.ScopeError{Scope: scope, Detail: "your role lacks the scope " + scope}
	}
	return c, known, err
}
