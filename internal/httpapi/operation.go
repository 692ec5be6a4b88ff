package httpapi

import (
	"github.com/danielgtaylor/huma/v2"
)

// operation is a row of a table of routes: the path, its handler and its documentation.
type operation struct {
	id, method, path     string
	tag, scope           string // without a scope, the operation needs no key
	also                 need   // beside the scope
	serve                func(*call) error
	summary, description string
	params               []pathParam // of the path; the API fills them in
	query                documented  // nil: the query has no parameters
	keyed, match         bool        // whether there are the headers Idempotency-Key, and If-Match with an ETag
	headers              []*huma.Param
	body                 *huma.RequestBody               // nil: without a query as well, the frame reads the whole request
	memory               int64                           // bytes that such a request waits for; 0: it needs little
	status               int                             // of a success
	answer               string                          // the meaning of a success
	example              any                             // of a success
	problems             []kind                          // beyond the problems of every operation with a key
	finish               func(map[string]*huma.Response) // adds responses and headers of this operation alone
}

// need is a further requirement of some requests: a scope, or, without one, the condition in words.
type need struct{ scope, when string }

// documented is the table of a query.
type documented interface{ parameters(*spec) []*huma.Param }
