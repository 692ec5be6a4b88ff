package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// Terms are the meaning of a valid document. They are immutable and safe for concurrent use.
type Terms struct {
	zone       *time.Location // the default
	rules      []rule
	quiet      []quiet
	categories map[string]Category
	plain      quota.Policy // the rules of every push; nil if they differ
	shadows    bool         // whether shadow rules exist
	reach      time.Duration
}

// rule is a rule of the document.
type rule struct {
	quota.Rule                // for recipients without their own limit and zone
	applies    *quota.Scope   // the pushes that it can refuse; nil: all
	calendar   *zone.Calendar // a calendar in the recipient's zone; nil: the rule is the same in all zones
	shadow     bool
	reserves   []reserve
}

// reserve is a number of places that a rule reserves for a category.
type reserve struct {
	category string
	places   int
	others   *quota.Scope // the pushes that the rule counts, except the category
}

// quiet is a set of quiet hours of the document.
type quiet struct {
	quota.Rule
	applies *quota.Scope
	hours   *zone.Hours // hours in the recipient's zone; nil: they are the same in all zones
}

// Person is the recipient's data that the terms depend on.
type Person = quota.Person

// Names returns the names of all rules and quiet hours.
func (t *Terms) Names() []string {
	var names []string
	for i := range t.rules {
		names = append(names, t.rules[i].Name)
	}
	for i := range t.quiet {
		names = append(names, t.quiet[i].Name)
	}
	return names
}

// Level returns the service level of a category, as the document names it; "": it does not.
func (t *Terms) Level(category string) string { return t.categories[category].Level }

// DefaultZone returns the zone of rules and quiet hours that name none.
func (t *Terms) DefaultZone() *time.Location { return t.zone }

// Reach returns how far from a time a booking can affect it, for any push: see [quota.Policy.Reach].
func (t *Terms) Reach() time.Duration { return t.reach }

// Plain reports whether the same rules apply to every push to every recipient without limits of their own. The kinds of
// bookings do not matter then.
func (t *Terms) Plain() bool { return t.plain != nil }

// MayDefer reports whether some quiet hours defer pushes.
func (t *Terms) MayDefer() bool {
	return slices.ContainsFunc(t.quiet, func(q quiet) bool { return q.Defers })
}

// For returns the rules and the quiet hours for pushes of a kind to a person. The result must not be changed.
func (t *Terms) For(p Person, k quota.Kind) quota.Policy {
	switch {
	case t.plain != nil && len(p.Limits) == 0:
		return t.plain
	case t.categories[k.Category].Bypass:
		return nil
	}
	all := t.rulesFor(make(quota.Policy, 0, len(t.rules)+len(t.quiet)), p, k, false)
	for i := range t.quiet {
		if q := &t.quiet[i]; q.applies.Has(k) {
			all = append(all, q.Rule)
			if q.hours != nil && p.Zone != nil {
				h := *q.hours
				h.Zone = p.Zone
				all[len(all)-1].Periods = h
			}
		}
	}
	return all
}

// Shadow returns the shadow rules for pushes of a kind to a person: their refusals are only reported.
func (t *Terms) Shadow(p Person, k quota.Kind) quota.Policy {
	if !t.shadows || t.categories[k.Category].Bypass {
		return nil
	}
	return t.rulesFor(nil, p, k, true)
}

// rulesFor appends the rules, or else the shadow rules, that can refuse pushes of a kind.
func (t *Terms) rulesFor(all quota.Policy, p Person, k quota.Kind, shadow bool) quota.Policy {
	for i := range t.rules {
		r := &t.rules[i]
		if r.shadow != shadow || !r.applies.Has(k) {
			continue
		}
		of := r.Rule
		if r.calendar != nil && p.Zone != nil {
			c := *r.calendar
			c.Zone = p.Zone
			of.Periods = c
		}
		if own, ok := p.Limits[r.Name]; ok {
			of.Limit = own
		}
		all = append(all, of)
		for _, reserve := range r.reserves {
			if reserve.category != k.Category {
				of.Counts, of.Reserved = reserve.others, reserve.places
				all = append(all, of)
			}
		}
	}
	return all
}

// settle computes what follows from the parts of the terms.
func (t *Terms) settle() {
	var uncounted []string
	for _, name := range slices.Sorted(maps.Keys(t.categories)) {
		if counts := t.categories[name].Counts; counts != nil && !*counts {
			uncounted = append(uncounted, name)
		}
	}
	plain := len(t.quiet) == 0 && len(t.categories) == 0
	all := make(quota.Policy, 0, len(t.rules))
	for i := range t.rules {
		r := &t.rules[i]
		counts := quota.Scope{Without: uncounted}
		if r.applies != nil {
			counts.Channels, counts.Categories = r.applies.Channels, r.applies.Categories
		}
		if r.applies != nil || uncounted != nil {
			r.Counts = &counts
		}
		for _, name := range slices.Sorted(maps.Keys(t.categories)) {
			if places := t.categories[name].Reserve[r.Name]; places > 0 {
				others := counts
				others.Without = append(slices.Clone(uncounted), name)
				r.reserves = append(r.reserves, reserve{name, places, &others})
			}
		}
		t.shadows = t.shadows || r.shadow
		plain = plain && !r.shadow && r.applies == nil && r.calendar == nil
		all = append(all, r.Rule)
	}
	t.reach = all.Reach()
	if plain {
		t.plain = all
	}
}
