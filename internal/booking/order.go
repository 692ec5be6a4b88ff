package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Order asks to book drafts of one tenant. They are decided one after another: each conflicts with those that were
// booked before it.
type Order struct {
	Drafts []Draft
	Policy Terms     // of a tenant without a policy of its own; the snapshot has those of others
	Atomic bool      // book all drafts or none
	DryRun bool      // decide, but book nothing
	Now    time.Time // free times before it are not offered for a refused draft

	CapUsage *CapUsage // how much of the tenant's caps is used; nil: the tenant has no caps
}

// Draft is a push to be booked. If it has a TTL, ExpiresAt follows from it.
type Draft struct {
	Push   push.Push
	Latest time.Time // a conflict moves the push to the next free time up to this one; zero: a conflict refuses it
	Last   time.Time // quiet hours that defer move the push up to this one; zero: they refuse it
	Show   bool      // the decision shows all bookings of the recipient that matter to what is sent from now on

	// Far has the view show all times that the draft may be moved to. Without it, the view shows the next days, which is where a
	// free time mostly is.
	Far bool

	// LookOnly is for a draft whose view alone is asked for. It is not decided.
	LookOnly bool

	// From and Until are times between which the view shows all that matters, whatever the decision needs; zero: nothing more.
	From, Until time.Time

	// Retried is, for a retry, the latest one before it, of all retries of the same first push; a zero id: there was none. The draft is
	// refused if there is another one by now. nil: it is no retry.
	Retried *uuid.UUID

	// By is, for a retry, who asks for it.
	By push.Actor

	// Was is, for a move, the send time that the push must still have; zero: it may have any.
	Was time.Time

	// NeedsAddress is for a channel that sends to an address: without one in the push, the recipient must have one.
	NeedsAddress bool
}

// Outcome is what became of a draft.
type Outcome int

// The outcomes of a draft.
const (
	NoPlace   Outcome = iota // its send time is not free in the quota
	Booked                   // it is a new push
	Replayed                 // this Idempotency-Key made the push before
	Gone                     // this Idempotency-Key made a push before that is not kept any more
	KeyReused                // this Idempotency-Key made a push from another request
	OverCap                  // the quota has a free time for it, but a cap of the tenant has no room
	OptedOut                 // the recipient does not want it
	NoAddress                // neither the push nor the recipient has an address for its channel
	Uncounted                // it would be moved to a day that CapUsage does not tell; nothing of the order is booked
	Undecided                // it is only looked at
	Retried                  // there is another retry of the same push than it knows
	Unseen                   // its next free time is later than its view shows; with Far, the order can come again. Nothing of it is booked
)

// Decision is what was decided about one draft.
type Decision struct {
	Outcome           Outcome
	Push              push.Push     // as it is stored
	Usage             []quota.Usage // of Booked: how full each rule is around the push
	NewRecipientOfDay bool          // of Booked: it is the recipient's only push on its day
	Shadow            []string      // of Booked: the shadow rules that would have refused it
	Capped            *Capped       // of OverCap and Uncounted
	OptOuts           OptOuts       // of OptedOut: those that it would go against

	// Bookings are, for a draft with Show that was booked or refused, all bookings of the recipient that matter.
	// Crowded says that there are more than Crowd, and that they are left out.
	Bookings []quota.Booking
	Crowded  bool

	// Quota says why a draft was refused. Its free times hold only if Complete. If they do not, Granted are the
	// bookings of the same recipient that the order made before; they may have been taken back since.
	Quota    quota.Decision
	Complete bool
	Granted  []quota.Booking
}

// Crowd is how many bookings a recipient may have without being crowded. The bookings of a crowded recipient are
// neither shown nor kept in the cache.
const Crowd = 1000

// MaxRead is how many bookings of one recipient are read without a lock, at most: more than twice as many as a rule may
// allow in a window.
const MaxRead = 250_000

// Held is a booking, and the state of its push.
type Held struct {
	quota.Booking
	Status push.Status
}

// Tenant returns the tenant of all drafts.
func (o Order) Tenant() uuid.UUID { return o.Drafts[0].Push.Tenant }

// Recipient returns whose quota the draft needs.
func (d Draft) Recipient() quota.Recipient {
	return quota.Recipient{Tenant: d.Push.Tenant, ID: d.Push.Recipient}
}

// Books reports whether these decisions leave booked what they grant. They do not if the order only asks, if it is
// atomic and not granted as a whole, if it bears an Idempotency-Key of another request, or if it has to come again, with
// another day counted or with a wider view.
func (o Order) Books(decisions []Decision) bool {
	all := true
	for i := range decisions {
		switch decisions[i].Outcome {
		case KeyReused, Uncounted, Unseen:
			return false
		case NoPlace, OverCap, OptedOut, NoAddress, Retried:
			all = false
		}
	}
	return !o.DryRun && (all || !o.Atomic)
}

// Around returns the empty view that has to be filled with bookings before a draft of the order can be decided under
// some terms.
func (o Order) Around(t Terms, d Draft) quota.View {
	reach := t.Reach()
	v := quota.Around(d.Push.SendAt, reach, 1)
	more := min(reach, mostAround) // so that the free times around it are known, too, as they mostly are so near
	v.From, v.Until = v.From.Add(-more), v.Until.Add(more)
	last := d.Push.SendAt
	if d.Latest.After(last) {
		last = d.Latest
	} else if d.Last.After(last) && t.MayDefer() {
		last = d.Last
	}
	if near := d.Push.SendAt.Add(max(mostAround, 2*reach)); !d.Far && last.After(near) {
		last = near
	}
	if o.CapUsage.limitsDays() { // a push anywhere on a day on which the draft may land matters
		v.Widen(DayOf(d.Push.SendAt).Begin().Add(-time.Nanosecond), (DayOf(last) + 1).Begin())
	}
	v.Widen(v.From, last.Add(reach))
	if !d.Until.IsZero() {
		v.Widen(d.From.Add(-reach), d.Until.Add(reach))
		if o.CapUsage.limitsDays() {
			v.Widen(DayOf(d.From).Begin().Add(-time.Nanosecond), (DayOf(d.Until) + 1).Begin())
		}
	}
	if d.Show {
		v.Widen(o.Now.Add(-reach-showMargin), EndOfTime)
	}
	return v
}

// mostAround is how far a view shows more than the decision needs. Weeks of pushes are tables of their own.
const mostAround = 48 * time.Hour

// showMargin is for the difference between clocks.
const showMargin = 2 * time.Minute

// EndOfTime is later than any send time.
var EndOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// freeTime returns a free time for the draft: its send time or, if the draft may be moved, the next free time up to the
// latest one. The outcome is [Booked], [NoPlace] if there is none, or [Unseen].
func (d Draft) freeTime(policy quota.Policy, view *quota.View) (at time.Time, outcome Outcome) {
	if policy.Allows(view.Timeline, d.Push.SendAt) {
		return d.Push.SendAt, Booked
	}
	latest := d.Latest
	if latest.IsZero() && policy.Defers(d.Push.SendAt) {
		latest = d.Last
	}
	if latest.IsZero() {
		return time.Time{}, NoPlace
	}
	next, ok := policy.Next(view.Timeline, d.Push.SendAt, quota.Second)
	switch {
	case !ok || next.After(latest): // more bookings would make it no earlier
		return time.Time{}, NoPlace
	case !d.Far && next.Add(policy.Reach()).After(view.Until):
		return time.Time{}, Unseen
	}
	return next, Booked
}

// NearLimit reports whether at least four fifths of the limit of a rule are used. A rule with a limit of one would be
// near its limit with every push, and never is.
func NearLimit(u quota.Usage) bool { return u.Rule.Limit >= 2 && 5*u.Used >= 4*u.Rule.Limit }
