package httpapi

import (
	"slices"
)

// The groups of these operations in the documentation.
const (
	tagKeys  = "Keys"
	tagUsers = "Users"
)

// keys serves the API keys of tenants.
type keys struct {
	ring keyring
	most int // live keys of a tenant
}

// users serves the users of the console and their sessions.
type users struct {
	store     userStore
	most      int    // users of a tenant; 0: no limit
	publicURL string // of the console, without a path
}

// accountOperations returns the operations on API keys and users. A tenant can have maxKeys live keys and maxUsers users, 0 for no
// limit of users. The console is at publicURL, which has no path.
func accountOperations(s *spec, ring keyring, maxKeys int, store userStore, maxUsers int, publicURL string) []operation {
	return slices.Concat((&keys{ring, maxKeys}).routes(s), (&users{store, maxUsers, publicURL}).routes(s))
}
