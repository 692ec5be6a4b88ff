package booking

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Order asks to book drafts of one tenant. They are decided one after another: each sees the bookings of the earlier
// ones.
type Order struct {
	Drafts []Draft
	Policy Terms     // of a tenant without a policy of its own; the snapshot has other tenants' policies
	Atomic bool      // book all drafts or none
	DryRun bool      // decide, but book nothing
	Now    time.Time // free times before it are not offered for a refused draft

	CapUsage *CapUsage // the usage of the tenant's caps; nil: the tenant has no caps

	// MayExist means that an earlier transaction may have booked the drafts. The store sets it before it tries again.
	MayExist bool
}

// Draft is a push to book. If it has a TTL, ExpiresAt follows from it.
type Draft struct {
	Push   push.Push
	Latest time.Time // a conflict moves the push to the next free time up to this one; zero: a conflict refuses it
	Last   time.Time // quiet hours that defer move the push up to this one; zero: they refuse it
	Show   bool      // the decision contains all bookings of the recipient that matter to sends from now on

	// Far extends the view to all times that the draft may be moved to. Without it, the view covers the next days,
	// where a free time usually is.
	Far bool

	// LookOnly asks only for the draft's view. The draft is not decided.
	LookOnly bool

	// From and Until extend the view to this range, whatever the decision needs; zero: no extension.
	From, Until time.Time

	// Retried is, for a retry, the latest earlier retry of the same first push; a zero id: there was none. The draft is
	// refused if there is a newer one. nil: it is no retry.
	Retried *uuid.UUID

	// By is, for a retry, its actor.
	By push.Actor

	// Was is, for a move, the send time that the push must still have; zero: any.
	Was time.Time

	// NeedsAddress is set for a channel that sends to an address: the push or the recipient must have one.
	NeedsAddress bool

	// OwnOnly means that only a channel of the tenant's own has the name of the draft's channel: without it, the draft is refused.
	OwnOnly bool
}

// Outcome is the outcome of a draft.
type Outcome int

// The outcomes of a draft.
const (
	NoPlace    Outcome = iota // its send time is not free in the quota
	Booked                    // it is a new push
	Replayed                  // this Idempotency-Key has created the push before
	Gone                      // this Idempotency-Key has created a push that is no longer stored
	KeyReused                 // this Idempotency-Key was used for another request
	OverCap                   // the quota has a free time, but a cap of the tenant is used up
	OptedOut                  // the recipient has opted out
	Suppressed                // its address is suppressed
	NoAddress                 // neither the push nor the recipient has an address for its channel
	Uncounted                 // it would move to a day that CapUsage has not counted; nothing of the order is booked
	Undecided                 // LookOnly
	NoChannel                 // the tenant has deleted the channel meanwhile, or is deleting it
	Retried                   // a newer retry of the same push exists
	Unseen                    // its next free time is beyond its view; repeat the order with Far. Nothing of it is booked
)

// Decision is the decision about one draft.
type Decision struct {
	Outcome           Outcome
	Push              push.Push          // as stored; of a refused draft, only its level
	Usage             []quota.Usage      // for Booked: how full each rule is around the push
	NewRecipientOfDay bool               // for Booked: it is the recipient's only push on its day
	Shadow            []string           // for Booked: the shadow rules that would have refused it
	Capped            *Capped            // for OverCap and Uncounted
	OptOuts           OptOuts            // for OptedOut: the opt-outs that it would violate
	Suppression       *suppression.Entry // for Suppressed
	First             *push.Push         // for a retry that is booked: the first push of its chain, as it was before
	By                push.Actor         // for a retry that is booked: its actor

	// Bookings are, for a draft with Show that was booked or refused, all bookings of the recipient that matter.
	// Crowded means that there are more than Crowd, and that they are left out.
	Bookings []quota.Booking
	Crowded  bool

	// Quota is the reason of a refusal. Its free times are valid only if Complete. Otherwise Granted lists the bookings
	// of the same recipient that the order made before; they may have been taken back since.
	Quota    quota.Decision
	Complete bool
	Granted  []quota.Booking
}

// Crowd is the maximum number of bookings of a recipient who is not crowded. The bookings of a crowded recipient are
// neither shown nor cached.
const Crowd = 1000

// MaxRead is the maximum number of bookings of one recipient that are read without a lock: more than twice the maximum
// of a rule in a window.
const MaxRead = 250_000

// Held is a booking with the state of its push.
type Held struct {
	quota.Booking
	Status push.Status
}

// Tenant returns the tenant of all drafts.
func (o Order) Tenant() uuid.UUID { return o.Drafts[0].Push.Tenant }

// Recipient returns the owner of the quota that the draft needs.
func (d *Draft) Recipient() quota.Recipient {
	return quota.Recipient{Tenant: d.Push.Tenant, ID: d.Push.Recipient}
}

// Books reports whether the decisions of the order are stored. They are not if the order is a dry run, if it is atomic
// and not granted as a whole, if its Idempotency-Key was used for another request, or if it must be repeated with
// another day counted or with a wider view.
func (o Order) Books(decisions []Decision) bool {
	all := true
	for i := range decisions {
		switch decisions[i].Outcome {
		case KeyReused, Uncounted, Unseen:
			return false
		case NoPlace, OverCap, OptedOut, Suppressed, NoAddress, NoChannel, Retried:
			all = false
		}
	}
	return !o.DryRun && (all || !o.Atomic)
}

// Around returns the empty view to fill with bookings before a draft of the order can be decided under some terms.
func (o *Order) Around(t Terms, d *Draft) quota.View {
	reach := t.Reach()
	v := quota.Around(d.Push.SendAt, reach, 1)
	more := min(reach, mostAround) // the nearest free times are usually in this range
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
	if o.CapUsage.limitsDays() { // any push on a day where the draft may land matters
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

// mostAround bounds how far a view extends beyond the need of the decision. Each week of pushes is a table of its own.
const mostAround = 48 * time.Hour

// showMargin allows for differences between clocks.
const showMargin = 2 * time.Minute

// EndOfTime is later than any send time.
var EndOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// freeTime returns a free time for the draft: its send time or, if the draft may be moved, the next free time up to the
// latest one. The outcome is [Booked], [NoPlace] if there is none, or [Unseen].
func (d *Draft) freeTime(policy quota.Policy, view *quota.View) (at time.Time, outcome Outcome) {
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

// NearLimit reports whether at least four fifths of a rule's limit are used. It is always false for a limit of one,
// which every push would reach.
func NearLimit(u quota.Usage) bool { return u.Rule.Limit >= 2 && 5*u.Used >= 4*u.Rule.Limit }

// CampaignCanceledReason is the last error of a push that was canceled with its campaign.
const CampaignCanceledReason = "campaign-canceled"

// OfCampaign returns the outcome of a decision for a recipient of a campaign: [broadcast.OutcomeScheduled] if it is booked.
// Otherwise reason is the name of the API's problem or what is invalid, and rules are the rules or the cap in the way.
func (v *Decision) OfCampaign() (outcome broadcast.Outcome, reason string, rules []string) {
	switch v.Outcome {
	case Booked, Replayed:
		return broadcast.OutcomeScheduled, "", nil
	case OptedOut:
		return broadcast.OutcomeOptedOut, OptedOutReason, nil
	case Suppressed:
		return broadcast.OutcomeRefused, suppression.Failed, nil
	case NoAddress:
		return broadcast.OutcomeInvalid, "neither the line nor the recipient has an address for the channel", nil
	case NoChannel:
		return broadcast.OutcomeInvalid, "the channel does not exist any more", nil
	case NoPlace:
		reason = "quiet-hours"
		for i := range v.Quota.Violations {
			r := &v.Quota.Violations[i].Rule
			rules = append(rules, r.Name)
			if !r.Quiet {
				reason = "quota-exceeded"
			}
		}
		slices.Sort(rules)
		return broadcast.OutcomeRefused, reason, slices.Compact(rules)
	default:
		return broadcast.OutcomeRefused, "tenant-cap-exceeded", []string{v.Capped.Cap}
	}
}
