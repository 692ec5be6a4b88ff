package booking

import (
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// Replay books the existing bookings of a recipient again, under some terms, by send time and then by id. A booking
// that does not fit beside the earlier ones takes no place.
type Replay struct {
	of       Standing
	reach    time.Duration
	policies map[quota.Kind]quota.Policy
	line     quota.Timeline
}

// manyReplayed bounds the bookings that a replay stores before it drops those that no longer matter.
const manyReplayed = 4096

// NewReplay returns a replay for a recipient.
func NewReplay(of Standing) *Replay {
	return &Replay{of: of, reach: of.Terms.Reach(), policies: map[quota.Kind]quota.Policy{}}
}

// Count counts a booking without checking the rules: it has been sent, or is due.
func (r *Replay) Count(b quota.Booking) {
	if r.line.Len() >= manyReplayed {
		r.line = r.line.Since(b.At.Add(-r.reach))
	}
	if r.of.Terms.Plain() {
		b.Kind = quota.Kind{}
	}
	r.line = r.line.Insert(b)
}

// Try counts a booking if it fits. Otherwise it returns the names of the rules and quiet hours that forbid it.
func (r *Replay) Try(b quota.Booking) (forbidden []string) {
	policy, known := r.policies[b.Kind]
	if !known {
		policy = r.of.Policy(b.Kind)
		r.policies[b.Kind] = policy
	}
	if policy.Allows(r.line, b.At) {
		r.Count(b)
		return nil
	}
	for _, v := range policy.Violations(r.line, b.At) {
		forbidden = append(forbidden, v.Rule.Name)
	}
	return forbidden
}
