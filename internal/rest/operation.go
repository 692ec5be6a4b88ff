package rest

import (
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// The code that makes the answers also makes the examples of the documentation.

// The ids in examples.
const (
	ExampleID      = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	ExampleOtherID = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f02"
)

// ExampleTime returns the time of the examples, plus a time span.
func ExampleTime(after time.Duration) time.Time {
	return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC).Add(after)
}

// Operation is a row of a table of routes: the path, its handler and its documentation.
type Operation struct {
	ID, Method, Path     string
	Tag, Scope           string // without a scope, the operation needs no key
	Also                 Need   // beside the scope
	Serve                func(*Call) error
	Summary, Description string
	params               []PathParam // of the path; the API fills them in
	Query                documented  // nil: the query has no parameters
	Keyed, Match         bool        // whether there are the headers Idempotency-Key, and If-Match with an ETag
	Headers              []*huma.Param
	Body                 *huma.RequestBody               // nil: without a query as well, the frame reads the whole request
	Memory               int64                           // bytes that such a request waits for; 0: it needs little
	Status               int                             // of a success
	Answer               string                          // the meaning of a success
	Example              any                             // of a success
	Problems             []Kind                          // beyond the problems of every operation with a key
	Finish               func(map[string]*huma.Response) // adds responses and headers of this operation alone
}

// Need is a further requirement of some requests: a scope, or, without one, the condition in words.
type Need struct{ Scope, When string }

// documented is the table of a query.
type documented interface{ parameters(*Spec) []*huma.Param }

// begin reads the parts of a request that its operation declares. It returns all errors, unless the handler reads a query or a body.
func (o *Operation) begin(c *Call) error {
	if o.Query == nil {
		nothing.ReadQuery(c.Request, &struct{}{}, &c.Errors)
	}
	c.readPath(o.params)
	if o.Match {
		c.Unchanged = c.ifUnchanged(&c.Errors)
	}
	if o.Query != nil || o.Body != nil {
		return nil
	}
	if o.Memory > 0 {
		if err := c.Reserve(o.Memory); err != nil {
			return err
		}
	}
	return c.RejectBody(&c.Errors)
}
