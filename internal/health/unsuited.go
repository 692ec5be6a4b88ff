package health

import (
	"fmt"
	"strings"
)

// Unsuited lists what sendquota needs of a server and does not find, although the server works. The zero value lists
// nothing.
type Unsuited struct{ states, details []string }

// Lacks adds something that the server lacks: a word for it, and a sentence that ends with what to do.
func (u *Unsuited) Lacks(state, format string, args ...any) {
	u.states = append(u.states, state)
	u.details = append(u.details, fmt.Sprintf(format, args...))
}

// Err returns u as an error, or nil if the server lacks nothing.
func (u *Unsuited) Err() error {
	if len(u.states) == 0 {
		return nil
	}
	return u
}

// Error returns all sentences.
func (u *Unsuited) Error() string { return strings.Join(u.details, "; ") }

// State returns the word for the first thing that the server lacks.
func (u *Unsuited) State() string { return u.states[0] }

// Detail returns all sentences. They name no host, role or database.
func (u *Unsuited) Detail() string { return u.Error() }

// Usable is true: the program works with the server.
func (*Unsuited) Usable() bool { return true }
