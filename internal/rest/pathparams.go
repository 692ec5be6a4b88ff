package rest

import (
	"net/url"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"
)

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
