package channelhealth

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Backlog counts a tenant's due pushes of one level that wait for a channel.
type Backlog struct {
	Tenant  uuid.UUID
	Level   push.Level
	Waiting int
	Oldest  time.Time // since when the first of them is due
	Each    float64   // slots of the channel's speed that each takes, in the mean; 0: one
}

// slots returns the number of slots of the channel's speed that the pushes take.
func (b Backlog) slots() float64 { return float64(b.Waiting) * cmp.Or(b.Each, 1) }

// Sample has the messages of some waiting pushes of each level.
type Sample [len(push.Levels)][]json.RawMessage

// Measure sets how many slots each push of a backlog takes, by the segments of the texts of a sample.
func (s Sample) Measure(all []Backlog, segments func(message json.RawMessage) int) {
	var means [len(push.Levels)]float64
	for i, messages := range s {
		n := 0
		for _, m := range messages {
			n += max(segments(m), 1)
		}
		means[i] = float64(n) / float64(max(len(messages), 1))
	}
	for i := range all {
		all[i].Each = means[all[i].Level.Index()]
	}
}

// Drain estimates how long a channel takes to send a tenant's waiting pushes of each level, if nothing else comes and all
// attempts work. every is the time that the channel's speed allows for each slot. all are the backlogs of all tenants in
// the channel. The levels share the speed, and of each level, tenants take turns. The time is zero for a level where nothing of
// the tenant waits.
func Drain(all []Backlog, tenant uuid.UUID, every time.Duration, shares push.Shares) (after [len(push.Levels)]time.Duration) {
	var own, left, before [len(push.Levels)]float64 // before: what leaves until the last of the tenant's
	for _, b := range all {
		i := b.Level.Index()
		left[i] += b.slots()
		if b.Tenant == tenant {
			own[i] += b.slots()
		}
	}
	for _, b := range all {
		i := b.Level.Index()
		before[i] += min(b.slots(), own[i])
	}
	// Between two moments when a level runs empty, each level leaves at an even speed.
	for now := 0.0; ; {
		total := 0
		for i := range left {
			if left[i] > 0 {
				total += shares[i]
			}
		}
		if total == 0 {
			return after
		}
		step, empty := 0.0, -1
		for i := range left {
			if t := left[i] * float64(total) / float64(shares[i]); left[i] > 0 && (empty < 0 || t < step) {
				step, empty = t, i
			}
		}
		for i := range left {
			speed := float64(shares[i]) / float64(total)
			if left[i] > 0 && before[i] > 0 {
				if t := before[i] / speed; t <= step+1e-9 {
					after[i] = time.Duration((now + t) * float64(every))
				}
				before[i] -= step * speed
			}
			if left[i] > 0 {
				left[i] -= step * speed
			}
		}
		left[empty] = 0
		now += step
	}
}
