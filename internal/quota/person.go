package quota

import (
	"slices"
	"time"
)

// Person is what the rules ask about a recipient. The zero Person has nothing of their own.
type Person struct {
	Zone   *time.Location // nil: the default zone of the policy
	Limits map[string]int // by the names of rules, in the place of the rule's limit
}

// For returns the rules that hold for pushes of a kind to a person: all of the policy, with the person's own limits. It
// must not be changed.
func (p Policy) For(of Person, _ Kind) Policy {
	if len(of.Limits) == 0 {
		return p
	}
	own := slices.Clone(p)
	for i := range own {
		if limit, ok := of.Limits[own[i].Name]; ok {
			own[i].Limit = limit
		}
	}
	return own
}

// Plain reports that the same rules hold for pushes of every kind.
func (p Policy) Plain() bool { return true }

// Names returns the names of the rules.
func (p Policy) Names() []string {
	names := make([]string, len(p))
	for i := range p {
		names[i] = p[i].Name
	}
	return names
}

// MayDefer reports whether a push may move by itself to a free time, at some times at least.
func (p Policy) MayDefer() bool { return slices.ContainsFunc(p, func(r Rule) bool { return r.Defers }) }
