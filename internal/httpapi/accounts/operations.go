package accounts

import (
	"slices"

	"github.com/sendquota/sendquota/internal/rest"
)

// The groups of these operations in the documentation.
const (
	TagKeys  = "Keys"
	TagUsers = "Users"
)

// keys serves the API keys of tenants.
type keys struct {
	ring Keys
	most int // live keys of a tenant
}

// users serves the users of the console and their sessions.
type users struct {
	store     Users
	most      int    // users of a tenant; 0: no limit
	publicURL string // of the console, without a path
}

// Operations returns the operations on API keys and users. A tenant can have maxKeys live keys and maxUsers users, 0 for no
// limit of users. The console is at publicURL, which has no path.
func Operations(s *rest.Spec, ring Keys, maxKeys int, store Users, maxUsers int, publicURL string) []rest.Operation {
	return slices.Concat((&keys{ring, maxKeys}).routes(s), (&users{store, maxUsers, publicURL}).routes(s))
}
