package booking

import (
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Terms are the rules of a tenant. Which of them hold for a push depends on its recipient and on its kind. A
// [quota.Policy] is terms that are the same for all.
type Terms interface {
	// For returns the rules for pushes of a kind to a person. It must not be changed.
	For(p quota.Person, k quota.Kind) quota.Policy
	// Reach is how far from a time a booking can matter to it, for any push.
	Reach() time.Duration
	// Plain reports that nobody asks what kind a booking is of.
	Plain() bool
	// MayDefer reports whether a push may move by itself to a free time.
	MayDefer() bool
	// Names returns the names of all rules and quiet hours.
	Names() []string
}

// OrNone returns the first of the terms that there are; if there are none, those that limit nothing.
func OrNone(all ...Terms) Terms {
	for _, t := range all {
		if t != nil {
			return t
		}
	}
	return quota.Policy(nil)
}

// Person is what is known of a recipient when a push is decided. Nothing is known of the zero Person, and they take all
// pushes.
type Person struct {
	quota.Person
	Addresses map[string]string // by channel
	OptOuts   OptOuts
}

// OptOuts are the pushes that a person does not want.
type OptOuts struct {
	All                  bool
	Channels, Categories []string
}

// Of returns the opt-outs that a push of a kind would go against; the zero OptOuts if there are none.
func (o OptOuts) Of(k quota.Kind) OptOuts {
	against := OptOuts{All: o.All}
	if slices.Contains(o.Channels, k.Channel) {
		against.Channels = []string{k.Channel}
	}
	if slices.Contains(o.Categories, k.Category) {
		against.Categories = []string{k.Category}
	}
	return against
}

// Any reports whether there are opt-outs.
func (o OptOuts) Any() bool { return o.All || len(o.Channels) > 0 || len(o.Categories) > 0 }

// OptedOutReason is the last error of a push that was canceled because its recipient does not want it.
const OptedOutReason = "opted-out"

// Standing is the terms of a tenant and what is known of a recipient, as they were read together.
type Standing struct {
	Terms  Terms
	Person Person
}

// Policy returns the rules for pushes of a kind.
func (s Standing) Policy(k quota.Kind) quota.Policy { return s.Terms.For(s.Person.Person, k) }

// shadows are terms with rules whose refusals are only reported.
type shadows interface {
	Shadow(p quota.Person, k quota.Kind) quota.Policy
}

// shadow returns the shadow rules that would refuse a push beside what is booked.
func (s Standing) shadow(p *push.Push, view *quota.View) (names []string) {
	terms, ok := s.Terms.(shadows)
	if !ok {
		return nil
	}
	for _, v := range terms.Shadow(s.Person.Person, KindOf(p)).Violations(view.Timeline, p.SendAt) {
		names = append(names, v.Rule.Name)
	}
	return names
}

// KindOf returns the kind of a push.
func KindOf(p *push.Push) quota.Kind { return quota.Kind{Channel: p.Channel, Category: p.Category} }

// Of returns the booking of a push, with its kind.
func Of(p *push.Push) quota.Booking {
	return quota.Booking{ID: p.ID, At: p.SendAt, Kind: KindOf(p)}
}

// Under returns the booking of a push as some terms know it: with its kind only if they ask for it.
func Under(t Terms, p *push.Push) quota.Booking {
	b := Of(p)
	if t.Plain() {
		b.Kind = quota.Kind{}
	}
	return b
}
