package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// onlyID reads a request that names a thing by its id and says nothing else. It waits for so many bytes of memory for the answer; 0:
// for none.
func (c *call) onlyID(memory int64) (uuid.UUID, error) {
	var bad fieldErrors
	c.noQuery(&bad)
	id := c.pathID("id", &bad)
	if memory > 0 {
		if err := c.reserve(memory); err != nil {
			return id, err
		}
	}
	return id, c.noBody(&bad)
}

// byID serves a request that names a thing by its id and says nothing else. It answers with what do returns, and without a body if
// that is nil. A problem calls the thing by its name.
func (a *api) byID(c *call, thing string, memory int64, status int, do func(ctx context.Context, tenant, id uuid.UUID) (any, error)) error {
	id, err := c.onlyID(memory)
	if err != nil {
		return err
	}
	v, err := do(c.r.Context(), c.caller.Tenant, id)
	switch {
	case err != nil:
		return noSuch(thing, err)
	case v == nil:
		c.w.WriteHeader(status)
		return nil
	}
	return a.answer(c.w, status, v)
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
