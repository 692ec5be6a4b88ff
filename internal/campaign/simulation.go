package campaign

import (
	"cmp"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
)

// Simulation is the predicted result of a start.
type Simulation struct {
	Recipients                                     int // the sum of the next five
	Accepted, Deferred, Refused, OptedOut, Invalid int

	ByRule       map[string]int // refused and deferred recipients, counted for each rule and cap in their way
	Delays       []Delay        // of the deferred recipients
	CollidesWith []Collision    // the campaigns with most recipients first, at most maxCollisions
	BetterStarts []booking.Start

	FinishesAt  time.Time // an estimate of when the last push leaves, after what waits for the channel now, if nothing else comes; zero: none leaves
	Segments    *Segments // of the texts of accepted recipients; nil: the channel sends no text messages
	WouldExpire int       // accepted pushes that expire before the channel's speed lets them leave
}

// Segments counts the segments of texts.
type Segments struct {
	Total   int
	ByCount map[int]int // recipients, by the segments of their texts
}

// Delay counts the recipients deferred by at most UpTo, and by more than the previous delay's UpTo.
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

// Simulated is the predicted result of a recipient.
type Simulated struct {
	Recipient string
	Outcome   SimulatedOutcome
	SendAt    time.Time // zero: nothing would be sent
	Reason    string    // a problem of the API, or the fault of the line; empty if accepted or deferred
}

// SimulatedOutcome is the predicted outcome of a recipient.
type SimulatedOutcome string

// The outcomes of recipients, which are disjoint.
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

// delays are the upper bounds of the delays in a Simulation.
var delays = []time.Duration{time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 4 * time.Hour, 24 * time.Hour, 0}

// totals counts the outcomes of recipients.
type totals struct {
	Simulation
	collisions map[uuid.UUID]int
	drain      drain
}

func newTotals() *totals {
	t := &totals{Simulation: Simulation{ByRule: map[string]int{}}, collisions: map[uuid.UUID]int{}}
	for _, bound := range delays {
		t.Delays = append(t.Delays, Delay{UpTo: bound})
	}
	return t
}

// add counts a recipient. rules are the rules that block the requested time; segments are those of its text.
func (t *totals) add(d *campaigns.Decided, rules []string, segments int) Simulated {
	one := Simulated{Recipient: d.Recipient}
	outcome, reason, refusing := d.Outcome()
	t.Recipients++
	switch one.Reason = reason; outcome {
	case broadcast.OutcomeScheduled:
		t.drain.add(&d.Decision.Push, segments)
		if t.Segments != nil {
			t.Segments.Total += segments
			t.Segments.ByCount[segments]++
		}
		if one.SendAt, one.Outcome = d.Decision.Push.SendAt, SimulatedAccepted; !d.Deferred() {
			t.Accepted++
			return one
		}
		one.Outcome = SimulatedDeferred
		t.Deferred++
		t.delay(one.SendAt.Sub(d.Decision.Push.RequestedSendAt))
		t.rules(rules)
	case broadcast.OutcomeOptedOut:
		one.Outcome = SimulatedOptedOut
		t.OptedOut++
	case broadcast.OutcomeInvalid:
		one.Outcome = SimulatedInvalid
		t.Invalid++
	default:
		one.Outcome = SimulatedRefused
		t.Refused++
		t.rules(refusing)
	}
	return one
}

// delay counts a deferral.
func (t *totals) delay(by time.Duration) {
	i := slices.IndexFunc(delays, func(bound time.Duration) bool { return by <= bound || bound == 0 })
	t.Delays[i].Recipients++
}

func (t *totals) rules(names []string) {
	for _, name := range names {
		t.ByRule[name]++
	}
}

// collide counts a recipient for each campaign whose bookings are in its way.
func (t *totals) collide(with []uuid.UUID) {
	slices.SortFunc(with, compareIDs)
	for _, id := range slices.Compact(with) {
		t.collisions[id]++
	}
}

// most returns the campaigns that are in the way of most recipients.
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
