package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// call is one request on its way through a handler.
type call struct {
	api       *api
	w         *responseRecorder
	r         *http.Request
	caller    push.Caller
	memory    memory
	computing *bulkhead.Computing[uuid.UUID]

	op        *operation
	bad       fieldErrors    // the errors found in the request so far
	id, part  uuid.UUID      // the ids in the path: of a resource, and of a part of it
	text      string         // the text in the path, instead of an id
	unchanged push.Unchanged // If-Match, see operation.match
}

// begin reads the parts of a request that its operation declares. It returns all errors, unless the handler reads a query or a body.
func (c *call) begin() error {
	if c.op.query == nil {
		nothing.readQuery(c.r, &struct{}{}, &c.bad)
	}
	c.readPath()
	if c.op.match {
		c.unchanged = c.ifUnchanged(&c.bad)
	}
	if c.op.query != nil || c.op.body != nil {
		return nil
	}
	if c.op.memory > 0 {
		if err := c.reserve(c.op.memory); err != nil {
			return err
		}
	}
	return c.noBody(&c.bad)
}

// readPath reads the parameters of the path.
func (c *call) readPath() {
	for i, p := range c.op.params {
		switch {
		case p.maxText > 0:
			c.text = c.pathText(p, &c.bad)
		case i == 0:
			c.id = c.pathID(p.name, &c.bad)
		default:
			c.part = c.pathID(p.name, &c.bad)
		}
		if p.logged && c.id != uuid.Nil {
			c.note(c.id)
		}
	}
}

// pathID reads an id in the path.
func (c *call) pathID(name string, bad *fieldErrors) uuid.UUID {
	given := c.param(name)
	id, wrong := parseID(given)
	if wrong != "" {
		bad.add("path."+name, wrong, shown(given))
	}
	return id
}

// pathText reads a text in the path.
func (c *call) pathText(p pathParam, bad *fieldErrors) string {
	text := c.param(p.name)
	if wrong := unfit(text, 1, p.maxText); wrong != "" {
		bad.add("path."+p.name, wrong, shown(validUTF8(text)))
	}
	return text
}

// param returns a parameter of the path. chi leaves it escaped if the path has characters, like an escaped slash, that
// Path cannot tell apart.
func (c *call) param(name string) string {
	v := chi.URLParam(c.r, name)
	if c.r.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// now returns the time by the clock of the API.
func (c *call) now() time.Time { return c.api.now() }

// logger returns the log of the API.
func (c *call) logger() *slog.Logger { return c.api.cfg.Log }

// compute runs do, which keeps a processor busy and waits for nothing, in the tenant's turn.
func (c *call) compute(do func() error) error {
	return c.computing.Do(c.r.Context(), c.caller.Tenant, do)
}

// problemOf returns the problem that an error is answered with. Without a known problem, it returns false, and the text of the error
// is for the log only.
func (c *call) problemOf(err error) (p problemer, known bool) { return c.api.problemOf(err) }

// answer sends body with a status after the handler has returned. The handler's data is garbage by then, even if the
// caller reads the answer slowly.
func (c *call) answer(status int, body any) error {
	return c.api.stage(c.w, status, "application/json", body)
}

// noContent answers with a status and no body.
func (c *call) noContent() { c.w.WriteHeader(http.StatusNoContent) }

// header sets a header of the answer. The name is in canonical form.
func (c *call) header(name, value string) { c.w.setHeader(name, value) }

// byID serves a request that has nothing but an id in its path. It answers with the result of do, and without a body if
// that is nil. A problem uses the name of the resource.
func (c *call) byID(resource string, do func(ctx context.Context, tenant, id uuid.UUID) (any, error)) error {
	v, err := do(c.r.Context(), c.caller.Tenant, c.id)
	switch {
	case err != nil:
		return noSuch(resource, err)
	case v == nil:
		c.w.WriteHeader(c.op.status)
		return nil
	}
	return c.answer(c.op.status, v)
}

// noSuch turns [push.ErrNotFound] into a problem with the name of the resource.
func noSuch(resource string, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return refuse(notFound, "the "+resource+" does not exist")
	}
	return err
}

// created answers with a resource at a location: a new one, or an earlier one with the same Idempotency-Key.
func (c *call) created(location string, replayed bool, v any) error {
	c.header("Location", location)
	if replayed {
		c.header("Idempotency-Replayed", "true")
	}
	return c.answer(http.StatusCreated, v)
}

// breakOff ends an answer that has begun, so that the caller does not take a part for the whole.
func (c *call) breakOff(err error) {
	if c.w.whole.Err() == nil {
		c.logger().WarnContext(c.w.whole, "answer broken off", "request_id", c.w.id, "route", c.w.route, "error", err)
	}
	panic(http.ErrAbortHandler)
}
