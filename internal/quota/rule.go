package quota

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Rule allows at most Limit bookings in any half-open window of length Window, or in each one of Periods. A Limit of 0
// blocks every time, or every period.
type Rule struct {
	Name   string
	Limit  int
	Window time.Duration // of a rolling rule

	Periods Periods // of a calendar rule, and of quiet hours; nil: the rule is rolling
	Counts  *Scope  // the bookings that the rule counts; nil: all

	// Reserved is how many places of the limit are for bookings that Counts leaves out. A rule with reserved places
	// follows, in its policy, the rule of the same name that counts them too.
	Reserved int

	Quiet  bool // the periods are quiet hours: the limit is 0, and there is no usage of it
	Defers bool // of quiet hours: a push moves behind them by itself
}

// places is how many bookings the rule has room for.
func (r *Rule) places() int { return max(0, r.Limit-r.Reserved) }

// Length is how long the window of the rule is; of one with Periods, the period that a time lies in.
func (r *Rule) Length(at time.Time) time.Duration {
	if r.Periods == nil {
		return r.Window
	}
	from, until, _ := r.Periods.Around(at)
	return until.Sub(from)
}

// Periods are half-open stretches of time that do not overlap: the hours, days, weeks or months of a calendar, which
// leave no time between them, or the quiet hours of some days, which do.
type Periods interface {
	// Around returns the period [from, until) that t lies in; or, if it is not inside of one, a time around t that
	// touches no period.
	Around(t time.Time) (from, until time.Time, inside bool)
	// Longest is at least as long as every period that counts bookings.
	Longest() time.Duration
}

// Policy is a set of rules that must all hold for a push. The empty policy limits nothing.
type Policy []Rule

// Kind is what sort of push a booking is of, as far as the scopes of rules ask. The zero Kind has neither.
type Kind struct{ Channel, Category string }

// Scope says which kinds of pushes a rule is about. A nil Scope is about all.
type Scope struct {
	Channels   []string // nil: all
	Categories []string // nil: all
	Without    []string // categories that are left out
}

// Has reports whether the scope is about a kind.
func (s *Scope) Has(k Kind) bool {
	return s == nil || (s.Channels == nil || slices.Contains(s.Channels, k.Channel)) &&
		(s.Categories == nil || slices.Contains(s.Categories, k.Category)) &&
		!slices.Contains(s.Without, k.Category)
}

// Booking is a place held in a recipient's quota. It needs a Kind only for a policy whose rules have a [Scope].
type Booking struct {
	ID   uuid.UUID
	At   time.Time
	Kind Kind
}

// Reach is how far from a time a booking can matter to it: the longest window or period.
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
