package booking

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Terms are the rules of a tenant. Which rules apply to a push depends on its recipient and on its kind. A
// [quota.Policy] is the special case with the same rules for all.
type Terms interface {
	// For returns the rules for pushes of a kind to a person. The result must not be changed.
	For(p quota.Person, k quota.Kind) quota.Policy
	// Reach returns how far from a time a booking can affect it, for any push.
	Reach() time.Duration
	// Plain reports whether the terms ignore the kinds of bookings.
	Plain() bool
	// MayDefer reports whether a push may move by itself to a free time.
	MayDefer() bool
	// Names returns the names of all rules and quiet hours.
	Names() []string
}

// OrNone returns the first terms that are not nil; otherwise terms without limits.
func OrNone(all ...Terms) Terms {
	for _, t := range all {
		if t != nil {
			return t
		}
	}
	return quota.Policy(nil)
}

// LevelOf returns the service level of a push under the terms: that of its category. Without a category, a campaign's
// pushes are bulk.
func LevelOf(t Terms, p *push.Push) push.Level {
	if p.Category == "" && p.Campaign != uuid.Nil {
		return push.Bulk
	}
	if of, ok := t.(interface{ Level(category string) string }); ok {
		l, _ := push.ParseLevel(of.Level(p.Category))
		return l
	}
	return push.Normal
}

// Person is the recipient's data for a decision. The zero Person has no data and takes all pushes.
type Person struct {
	quota.Person
	Addresses map[string]string // by channel
	OptOuts   OptOuts
}

// AddressOf returns the address that a push goes to: its own, or the person's for its channel; "" if there is none.
func (p *Person) AddressOf(of *push.Push) string {
	if of.To != "" {
		return of.To
	}
	return p.Addresses[of.Channel]
}

// OptOuts selects the pushes that a person does not want.
type OptOuts struct {
	All                  bool
	Channels, Categories []string
}

// Of returns the opt-outs that a push of a kind would violate; the zero OptOuts if there are none.
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

// Standing is the terms of a tenant and the data of a recipient, read together.
type Standing struct {
	Terms  Terms
	Person Person
}

// Policy returns the rules for pushes of a kind.
func (s Standing) Policy(k quota.Kind) quota.Policy { return s.Terms.For(s.Person.Person, k) }

// shadows are terms with rules that only report their refusals.
type shadows interface {
	Shadow(p quota.Person, k quota.Kind) quota.Policy
}

// shadow returns the shadow rules that would refuse a push, given the recipient's bookings.
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

// Under returns the booking of a push for some terms: with its kind only if they depend on kinds.
func Under(t Terms, p *push.Push) quota.Booking {
	b := Of(p)
	if t.Plain() {
		b.Kind = quota.Kind{}
	}
	return b
}

// ShadowCount is the number of pushes of a category, submitted within a minute, that a shadow rule would have refused.
type ShadowCount struct {
	Tenant         uuid.UUID
	Minute         time.Time // its start
	Rule, Category string
	Pushes         int
}
