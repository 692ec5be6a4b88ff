package campaign

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// Simulation is what a start would do.
type Simulation struct {
	Recipients                                     int // the sum of the next five
	Accepted, Deferred, Refused, OptedOut, Invalid int

	ByRule       map[string]int // refused and deferred recipients, each for every rule, and every cap, in its way
	Delays       []Delay        // of the deferred ones
	CollidesWith []Collision    // the campaigns with most recipients first, maxCollisions at most
	BetterStarts []booking.Start
}

// Delay is how many recipients are deferred by so long at most, and by longer than the delay before it says.
type Delay struct {
	UpTo       time.Duration // 0: by any longer time
	Recipients int
}

// Collision is a campaign whose bookings are in the way of recipients.
type Collision struct {
	Campaign   uuid.UUID
	Name       string
	Recipients int
}

// Simulated is what would become of a recipient.
type Simulated struct {
	Recipient string
	Outcome   SimulatedOutcome
	SendAt    time.Time // zero: nothing would be sent
	Reason    string    // by the names of the API's problems, or what is invalid; empty: it is accepted, or deferred
}

// SimulatedOutcome is what would become of a recipient.
type SimulatedOutcome string

// What can become of recipients. The outcomes are disjoint.
const (
	SimulatedAccepted SimulatedOutcome = "accepted" // at their time
	SimulatedDeferred SimulatedOutcome = "deferred" // at another time
	SimulatedRefused  SimulatedOutcome = "refused"
	SimulatedOptedOut SimulatedOutcome = "opted_out"
	SimulatedInvalid  SimulatedOutcome = "invalid"
)

const (
	maxCollisions   = 20
	maxBetterStarts = 5
)

// delays are the bounds by which the delays of recipients are counted.
var delays = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour, 0}

// totals counts what would become of recipients.
type totals struct {
	Simulation
	collisions map[uuid.UUID]int
}

func newTotals() *totals {
	t := &totals{Simulation: Simulation{ByRule: map[string]int{}}, collisions: map[uuid.UUID]int{}}
	for _, bound := range delays {
		t.Delays = append(t.Delays, Delay{UpTo: bound})
	}
	return t
}

// add counts a recipient. rules are those in the way of the time that was asked for.
func (t *totals) add(d *store.CampaignDecided, rules []string) Simulated {
	one := Simulated{Recipient: d.Line.Recipient}
	outcome, reason, refusing := d.Outcome()
	t.Recipients++
	switch one.Reason = reason; outcome {
	case push.OutcomeScheduled:
		if one.SendAt, one.Outcome = d.Decision.Push.SendAt, SimulatedAccepted; !d.Deferred() {
			t.Accepted++
			return one
		}
		one.Outcome = SimulatedDeferred
		t.Deferred++
		t.delay(one.SendAt.Sub(d.Decision.Push.RequestedSendAt))
		t.rules(rules)
	case push.OutcomeOptedOut:
		one.Outcome = SimulatedOptedOut
		t.OptedOut++
	case push.OutcomeInvalid:
		one.Outcome = SimulatedInvalid
		t.Invalid++
	default:
		one.Outcome = SimulatedRefused
		t.Refused++
		t.rules(refusing)
	}
	return one
}

// delay counts a deferral by so long.
func (t *totals) delay(by time.Duration) {
	i := slices.IndexFunc(delays, func(bound time.Duration) bool { return by <= bound || bound == 0 })
	t.Delays[i].Recipients++
}

func (t *totals) rules(names []string) {
	for _, name := range names {
		t.ByRule[name]++
	}
}

// collide counts a recipient for each of the campaigns whose bookings are in its way.
func (t *totals) collide(with []uuid.UUID) {
	slices.SortFunc(with, compareIDs)
	for _, id := range slices.Compact(with) {
		t.collisions[id]++
	}
}

// most lists the campaigns that are in the way of most recipients.
func (t *totals) most() (all []Collision) {
	for id, n := range t.collisions {
		all = append(all, Collision{Campaign: id, Recipients: n})
	}
	slices.SortFunc(all, func(a, b Collision) int {
		return cmp.Or(cmp.Compare(b.Recipients, a.Recipients), compareIDs(a.Campaign, b.Campaign))
	})
	return all[:min(len(all), maxCollisions)]
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }
