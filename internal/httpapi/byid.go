package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// byID serves a request that names a thing by its id and says nothing else. It answers with what do returns, and without a body if
// that is nil. A problem calls the thing by its name.
func (a *api) byID(c *call, thing string, do func(ctx context.Context, tenant, id uuid.UUID) (any, error)) error {
	v, err := do(c.r.Context(), c.caller.Tenant, c.id)
	switch {
	case err != nil:
		return noSuch(thing, err)
	case v == nil:
		c.w.WriteHeader(c.op.status)
		return nil
	}
	return a.answer(c.w, c.op.status, v)
}

// noSuch says what was not found.
func noSuch(thing string, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return &refusal{kind: notFound, detail: "the " + thing + " does not exist"}
	}
	return err
}

// created answers with what a request has made at a location, or an earlier one with the same Idempotency-Key.
func (a *api) created(c *call, location string, replayed bool, v any) error {
	c.w.setHeader("Location", location)
	if replayed {
		c.w.setHeader("Idempotency-Replayed", "true")
	}
	return a.answer(c.w, http.StatusCreated, v)
}
