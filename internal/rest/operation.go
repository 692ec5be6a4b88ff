package rest

import (
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
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

// PathParam is a parameter of paths.
type PathParam struct {
	Name, Component, Description string
	Example                      string
	MaxText                      int  // the longest text, in bytes; 0: the parameter is a UUID
	Logged                       bool // the log names the id
}

// pathParams returns the parameters of a path, in their order. known has them by the path that ends with each.
func pathParams(path string, known map[string]PathParam) (all []PathParam) {
	for i, c := range path {
		if c == '}' {
			all = append(all, known[path[:i+1]])
		}
	}
	return all
}

// readPath reads the parameters of the path.
func (c *Call) readPath(params []PathParam) {
	for i, p := range params {
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

// resolvedParam follows the reference to a parameter, if it is one.
func resolvedParam(doc *huma.OpenAPI, p *huma.Param) *huma.Param {
	if name, is := strings.CutPrefix(p.Ref, paramPrefix); is {
		return doc.Components.Parameters[name]
	}
	return p
}
