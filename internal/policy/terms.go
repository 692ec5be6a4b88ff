package policy

import (
	"maps"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// Terms are what a valid document means. They do not change, and may be used by many at once.
type Terms struct {
	zone       *time.Location // the default
	rules      []rule
	quiet      []quiet
	categories map[string]Category
	plain      quota.Policy // what holds for every push; nil if that differs
	shadows    bool         // there are shadow rules
	reach      time.Duration
}

// rule is a rule of the document.
type rule struct {
	quota.Rule                // for those who have no limit of their own, and no zone where the rule asks for it
	judges     *quota.Scope   // the pushes that it judges; nil: all
	calendar   *zone.Calendar // whose zone is the recipient's; nil: the rule is the same in all zones
	shadow     bool
	reserves   []reserve
}

// reserve is places of a rule that are kept for a category.
type reserve struct {
	category string
	places   int
	others   *quota.Scope // what the rule counts, without the category
}

// quiet is quiet hours of the document.
type quiet struct {
	quota.Rule
	judges *quota.Scope
	hours  *zone.Hours // whose zone is the recipient's; nil: they are the same in all zones
}

// Person is what the terms ask about a recipient.
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

// DefaultZone returns the zone of what names none.
func (t *Terms) DefaultZone() *time.Location { return t.zone }

// Reach is how far from a time a booking can matter to it, for any push: see [quota.Policy.Reach].
func (t *Terms) Reach() time.Duration { return t.reach }

// Plain reports whether the same rules hold for every push to everybody without limits of their own. Then nobody asks
// what kind bookings are of.
func (t *Terms) Plain() bool { return t.plain != nil }

// MayDefer reports whether there are quiet hours out of which pushes move by themselves.
func (t *Terms) MayDefer() bool {
	return slices.ContainsFunc(t.quiet, func(q quiet) bool { return q.Defers })
}

// For returns the rules and the quiet hours that hold for pushes of a kind to a person. It must not be changed.
func (t *Terms) For(p Person, k quota.Kind) quota.Policy {
	switch {
	case t.plain != nil && len(p.Limits) == 0:
		return t.plain
	case t.categories[k.Category].Bypass:
		return nil
	}
	all := t.judged(make(quota.Policy, 0, len(t.rules)+len(t.quiet)), p, k, false)
	for i := range t.quiet {
		if q := &t.quiet[i]; q.judges.Has(k) {
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

// Shadow returns the shadow rules for pushes of a kind to a person: what they forbid is reported, and not refused.
func (t *Terms) Shadow(p Person, k quota.Kind) quota.Policy {
	if !t.shadows || t.categories[k.Category].Bypass {
		return nil
	}
	return t.judged(nil, p, k, true)
}

// judged adds the rules that judge pushes of a kind, or the shadow rules that would.
func (t *Terms) judged(all quota.Policy, p Person, k quota.Kind, shadow bool) quota.Policy {
	for i := range t.rules {
		r := &t.rules[i]
		if r.shadow != shadow || !r.judges.Has(k) {
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

// settle notes what follows from the parts of the terms.
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
		if r.judges != nil {
			counts.Channels, counts.Categories = r.judges.Channels, r.judges.Categories
		}
		if r.judges != nil || uncounted != nil {
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
		plain = plain && !r.shadow && r.judges == nil && r.calendar == nil
		all = append(all, r.Rule)
	}
	t.reach = all.Reach()
	if plain {
		t.plain = all
	}
}
