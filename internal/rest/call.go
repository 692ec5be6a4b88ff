package rest

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

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

	status    int            // of a success
	Errors    FieldErrors    // the errors of the request
	ID, Part  uuid.UUID      // the ids in the path: of a resource, and of a part of it
	Text      string         // the text in the path, instead of an id
	Unchanged push.Unchanged // If-Match, see Operation.Match
}

// Now returns the time by the clock of the API.
func (c *Call) Now() time.Time { return c.api.Now() }

// Logger returns the log of the API.
func (c *Call) Logger() *slog.Logger { return c.api.cfg.Log }

// Compute runs do, which keeps a processor busy and waits for nothing, in the tenant's turn.
func (c *Call) Compute(do func() error) error {
	return c.Computing.Do(c.Request.Context(), c.Caller.Tenant, do)
}

// Reserve waits for memory for the request and its answer, unless the request has it already.
func (c *Call) Reserve(bytes int64) (err error) {
	if c.Writer.memory == nil {
		from := c.memory.large
		if bytes <= bodyBytes(MaxBody) {
			from = c.memory.small
		}
		c.Writer.memory, err = from.Acquire(c.Request.Context(), c.Caller.Tenant, bytes)
	}
	return err
}

// Ready returns all errors of the request. Without errors, it waits for memory.
func (c *Call) Ready(bytes int64) error {
	if err := c.Errors.Err(); err != nil {
		return err
	}
	return c.Reserve(bytes)
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

// loggedPushes is the largest number of ids in one line of the log.
const loggedPushes = 20

// Note adds a push to the log line of the request.
func (c *Call) Note(id uuid.UUID) {
	rec := c.Writer
	if rec.about++; rec.about <= loggedPushes {
		rec.pushes = append(rec.pushes, id)
	}
}

// ByID serves a request that has nothing but an id in its path. It answers with the result of do, and without a body if
// that is nil. A problem uses the name of the resource.
func (c *Call) ByID(resource string, do func(ctx context.Context, tenant, id uuid.UUID) (any, error)) error {
	v, err := do(c.Request.Context(), c.Caller.Tenant, c.ID)
	switch {
	case err != nil:
		return NoSuch(resource, err)
	case v == nil:
		c.Writer.WriteHeader(c.status)
		return nil
	}
	return c.Answer(c.status, v)
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

// DefaultMemory is the default of the bytes of all requests and answers.
const DefaultMemory = 160 << 20

// memory bounds the bytes of requests and answers, of all tenants and of each. The bytes of a request are
// estimated generously before it is read: its text, its parsed form, its data for Postgres, and its answer. While
// the answer is being sent, only the answer counts.
type memory struct {
	bodies *bulkhead.Bulkhead[uuid.UUID] // of batches that are being read
	small  *bulkhead.Bulkhead[uuid.UUID] // of small requests, such as those about one push
	large  *bulkhead.Bulkhead[uuid.UUID] // of batches, pages and availabilities: small requests do not wait for them
}

func newMemory(bytes int64) memory {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	bodies, small, large := bytes*3/10, bytes*2/10, bytes*5/10
	return memory{bulkhead.New[uuid.UUID](bodies, bodies/3), bulkhead.New[uuid.UUID](small, small/2), bulkhead.New[uuid.UUID](large, large/2)}
}

const (
	// PageBytes is for a page of about a mebibyte, and SlotsBytes for the picture of ten thousand bookings, or of half as many with their
	// conflicts.
	PageBytes  = 4 << 20
	SlotsBytes = 8 << 20
	PushBytes  = 4 * MaxBody // for one push
)
