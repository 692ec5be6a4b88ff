package booking

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// ChangedReason is the last error of a push that was canceled because it did not fit into its tenant's new policy.
const ChangedReason = "policy-changed"

// Misfits are the bookings of a recipient that do not fit into the current terms, by send time.
type Misfits struct {
	Bookings []quota.Booking
	who      quota.Recipient
}

// Misfits returns the future bookings that do not fit, for the recipient of the order's only draft, which shows all
// bookings: see [Replay]. Due or sent pushes count unconditionally.
func (x *Decider) Misfits(o Order) Misfits {
	r := Misfits{who: o.Drafts[0].Recipient()}
	replay := NewReplay(x.standing(&o, r.who))
	bookings := x.views.View(r.who).Bookings()
	slices.SortFunc(bookings, func(a, b quota.Booking) int { return cmp.Or(a.At.Compare(b.At), bytes.Compare(a.ID[:], b.ID[:])) })
	for _, b := range bookings {
		if !b.At.After(x.now) {
			replay.Count(b)
		} else if replay.Try(b) != nil {
			r.Bookings = append(r.Bookings, b)
		}
	}
	return r
}

// Reslot moves each misfit in pushes to its next free time up to latest, in order of send times, as if no misfit had a
// place. It returns the ids of pushes without such a time. Grants keep the requested time.
func (x *Decider) Reslot(o Order, r Misfits, pushes []push.Push, latest time.Time) (without []uuid.UUID) {
	view, of := x.views.View(r.who), x.standing(&o, r.who)
	misfit, fits := make(map[uuid.UUID]bool, len(r.Bookings)), make([]quota.Booking, 0, view.Len()-len(r.Bookings))
	for _, b := range r.Bookings {
		misfit[b.ID] = true
	}
	for _, b := range view.Bookings() {
		if !misfit[b.ID] {
			fits = append(fits, b)
		}
	}
	view.Timeline = quota.NewTimeline(fits)
	slices.SortFunc(pushes, func(a, b push.Push) int { return cmp.Or(a.SendAt.Compare(b.SendAt), bytes.Compare(a.ID[:], b.ID[:])) })
	for _, p := range pushes {
		if p.Status != push.Scheduled || !misfit[p.ID] {
			continue
		}
		last := latest
		if p.TTL == 0 && p.ExpiresAt.Add(-time.Nanosecond).Before(last) {
			last = p.ExpiresAt.Add(-time.Nanosecond)
		}
		policy := of.Policy(KindOf(&p))
		to, free := policy.Next(view.Timeline, p.SendAt, quota.Second)
		if !free || to.After(last) {
			without = append(without, p.ID)
			continue
		}
		p.SendAt, p.Burst, p.Gen = to, true, p.Gen+1 // many may move to the same second
		x.grant(&Decision{Outcome: Booked, Push: p}, &Draft{Push: p}, of.Terms, policy, view)
	}
	return without
}

// Refitting is the operation that applies a changed policy to existing bookings. A worker holds it.
type Refitting struct {
	policy.Operation
	Tenant  uuid.UUID
	Worker  uuid.UUID
	Settled bool          // all transactions that decided by an older version of the policy have committed
	After   push.Position // it has read the pushes up to here
}

// RefitPage is the next page of pushes for an operation.
type RefitPage struct {
	Recipients []string // of the scheduled pushes
	Next       push.Position
	Last       bool // there are no more
}

// Rechecked are pushes that a rule had put off, and that are due again.
type Rechecked struct {
	Recipients []int64 // their keys, once for each push
	More       bool    // there may be more
}

// Refitted is the result of an operation for one recipient.
type Refitted struct {
	Moved    []push.Push
	Canceled int
	More     bool // there is more to do
}

// ErrReplaced: the operation has ended, or another worker has taken it over.
var ErrReplaced = errors.New("the operation has ended or another worker has taken it over")
