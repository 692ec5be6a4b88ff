package rest

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

// Call is one request on its way through a handler.
type Call struct {
	api       *API
	Writer    *responseRecorder
	Request   *http.Request
	Caller    push.Caller
	memory    memory
	Computing *bulkhead.Computing[uuid.UUID]

	op        *Operation
	Errors    FieldErrors    // the errors of the request
	ID, Part  uuid.UUID      // the ids in the path: of a resource, and of a part of it
	Text      string         // the text in the path, instead of an id
	Unchanged push.Unchanged // If-Match, see operation.match
}

// begin reads the parts of a request that its operation declares. It returns all errors, unless the handler reads a query or a body.
func (c *Call) begin() error {
	if c.op.Query == nil {
		nothing.ReadQuery(c.Request, &struct{}{}, &c.Errors)
	}
	c.readPath()
	if c.op.Match {
		c.Unchanged = c.ifUnchanged(&c.Errors)
	}
	if c.op.Query != nil || c.op.Body != nil {
		return nil
	}
	if c.op.Memory > 0 {
		if err := c.Reserve(c.op.Memory); err != nil {
			return err
		}
	}
	return c.NoBody(&c.Errors)
}

// readPath reads the parameters of the path.
func (c *Call) readPath() {
	for i, p := range c.op.params {
		switch {
		case p.MaxText > 0:
			c.Text = c.pathText(p, &c.Errors)
		case i == 0:
			c.ID = c.pathID(p.Name, &c.Errors)
		default:
			c.Part = c.pathID(p.Name, &c.Errors)
		}
		if p.Logged && c.ID != uuid.Nil {
			c.Note(c.ID)
		}
	}
}

// pathID reads an id in the path.
func (c *Call) pathID(name string, bad *FieldErrors) uuid.UUID {
	given := c.param(name)
	id, wrong := parseID(given)
	if wrong != "" {
		bad.Add("path."+name, wrong, Shown(given))
	}
	return id
}

// pathText reads a text in the path.
func (c *Call) pathText(p PathParam, bad *FieldErrors) string {
	text := c.param(p.Name)
	if wrong := Unfit(text, 1, p.MaxText); wrong != "" {
		bad.Add("path."+p.Name, wrong, Shown(ValidUTF8(text)))
	}
	return text
}

// param returns a parameter of the path. chi leaves it escaped if the path has characters, like an escaped slash, that
// Path cannot tell apart.
func (c *Call) param(name string) string {
	v := chi.URLParam(c.Request, name)
	if c.Request.URL.RawPath == "" {
		return v
	}
	if plain, err := url.PathUnescape(v); err == nil {
		return plain
	}
	return v
}

// Now returns the time by the clock of the API.
func (c *Call) Now() time.Time { return c.api.Now() }

// Logger returns the log of the API.
func (c *Call) Logger() *slog.Logger { return c.api.cfg.Log }

// Compute runs do, which keeps a processor busy and waits for nothing, in the tenant's turn.
func (c *Call) Compute(do func() error) error {
	return c.Computing.Do(c.Request.Context(), c.Caller.Tenant, do)
}

// ProblemOf returns the problem that an error is answered with. Without a known problem, it returns false, and the text of the error
// is for the log only.
func (c *Call) ProblemOf(err error) (p Problemer, known bool) { return c.api.problemOf(err) }

// Answer sends body with a status after the handler has returned. The handler's data is garbage by then, even if the
// caller reads the answer slowly.
func (c *Call) Answer(status int, body any) error {
	return c.api.stage(c.Writer, status, "application/json", body)
}

// Header sets a header of the answer. The name is in canonical form.
func (c *Call) Header(name, value string) { c.Writer.SetHeader(name, value) }

// ByID serves a request that has nothing but an id in its path. It answers with the result of do, and without a body if
// that is nil. A problem uses the name of the resource.
func (c *Call) ByID(resource string, do func(ctx context.Context, tenant, id uuid.UUID) (any, error)) error {
	v, err := do(c.Request.Context(), c.Caller.Tenant, c.ID)
	switch {
	case err != nil:
		return NoSuch(resource, err)
	case v == nil:
		c.Writer.WriteHeader(c.op.Status)
		return nil
	}
	return c.Answer(c.op.Status, v)
}

// NoSuch turns [push.ErrNotFound] into a problem with the name of the resource.
func NoSuch(resource string, err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return refuse(NotFound, "the "+resource+" does not exist")
	}
	return err
}

// Created answers with a resource at a location: a new one, or an earlier one with the same Idempotency-Key.
func (c *Call) Created(location string, replayed bool, v any) error {
	c.Header("Location", location)
	if replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.Answer(http.StatusCreated, v)
}

// BreakOff ends an answer that has begun, so that the caller does not take a part for the whole.
func (c *Call) BreakOff(err error) {
	if c.Writer.Whole.Err() == nil {
		c.Logger().WarnContext(c.Writer.Whole, "answer broken off", "request_id", c.Writer.RequestID, "route", c.Writer.Route, "error", err)
	}
	panic(http.ErrAbortHandler)
}
