package quota

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Rule allows at most Limit bookings in any half-open window of length Window, or in each of Periods. A Limit of 0
// blocks every time, or every period.
type Rule struct {
	Name   string
	Limit  int
	Window time.Duration // of a rolling rule

	Periods Periods // of a calendar rule or quiet hours; nil: the rule is rolling
	Counts  *Scope  // the bookings that the rule counts; nil: all

	// Reserved is the number of places of the limit that are kept for bookings outside Counts. A policy then has two rules
	// of this name: first one that counts all bookings, without reserved places, and then this one.
	Reserved int

	Quiet  bool // the periods are quiet hours: the limit is 0, and there is no usage of it
	Defers bool // for quiet hours: a push moves to their end by itself
}

// places returns the maximum number of bookings that the rule counts.
func (r *Rule) places() int { return max(0, r.Limit-r.Reserved) }

// Length returns the length of the rule's window or, with Periods, of the period that a time lies in.
func (r *Rule) Length(at time.Time) time.Duration {
	if r.Periods == nil {
		return r.Window
	}
	from, until, _ := r.Periods.Around(at)
	return until.Sub(from)
}

// Periods are half-open stretches of time that do not overlap. The hours, days, weeks or months of a calendar leave no
// gaps; the quiet hours of some days do.
type Periods interface {
	// Around returns the period [from, until) that t lies in. If t lies in none, it returns a stretch around t that
	// touches no period.
	Around(t time.Time) (from, until time.Time, inside bool)
	// Longest returns an upper bound of the length of all periods that count bookings.
	Longest() time.Duration
}

// Policy is a set of rules that must all hold for a push. The empty policy limits nothing.
type Policy []Rule

// Kind is the channel and category of a booking's push, if the scopes of rules depend on them. The zero Kind has
// neither.
type Kind struct{ Channel, Category string }

// Scope selects the kinds of pushes that a rule concerns. A nil Scope selects all.
type Scope struct {
	Channels   []string // nil: all
	Categories []string // nil: all
	Without    []string // categories that are left out
}

// Has reports whether the scope includes a kind.
func (s *Scope) Has(k Kind) bool {
	return s == nil || (s.Channels == nil || slices.Contains(s.Channels, k.Channel)) &&
		(s.Categories == nil || slices.Contains(s.Categories, k.Category)) &&
		!slices.Contains(s.Without, k.Category)
}

// Booking is a place in a recipient's quota that a push holds. It needs a Kind only if a rule of the policy has a
// [Scope].
type Booking struct {
	ID   uuid.UUID
	At   time.Time
	Kind Kind
}

// Reach returns how far from a time a booking can affect it: the longest window or period.
func (p Policy) Reach() time.Duration {
	var reach time.Duration
	for i := range p {
		if r := &p[i]; r.Periods != nil {
			reach = max(reach, r.Periods.Longest())
		} else {
			reach = max(reach, r.Window)
		}
	}
	return reach
}

// Name returns the stored form of the name of a category, a channel or a rule: trimmed and in lower case. Marketing and
// marketing are one category, so that opting out of one opts out of the other. A name that is not UTF-8 stays
// unchanged.
func Name(s string) string {
	if !utf8.ValidString(s) {
		return s
	}
	return strings.ToLower(strings.Trim(s, " "))
}

// always reports whether the rule blocks all time.
func (r *Rule) always() bool { return r.places() == 0 && !r.Quiet }
