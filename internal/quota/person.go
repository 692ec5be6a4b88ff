package quota

import (
	"slices"
	"time"
)

// Person is the data of a recipient that rules depend on. The zero Person uses the policy's defaults.
type Person struct {
	Zone   *time.Location // nil: the default zone of the policy
	Limits map[string]int // by the name of a rule, replacing the rule's limit
}

// For returns the rules for pushes of a kind to a person: the whole policy, with the person's own limits. The result
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

// Plain reports whether the same rules apply to pushes of every kind.
func (p Policy) Plain() bool { return true }

// Names returns the names of the rules.
func (p Policy) Names() []string {
	names := make([]string, len(p))
	for i := range p {
		names[i] = p[i].Name
	}
	return names
}

// MayDefer reports whether some rule may move a push by itself to a free time.
func (p Policy) MayDefer() bool { return slices.ContainsFunc(p, func(r Rule) bool { return r.Defers }) }
