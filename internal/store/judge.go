package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// judge decides orders one after another, under the locks of all recipients
// concerned. It grows the recipients' views by what it grants.
type judge struct {
	now      time.Time
	at       map[quota.Recipient]int
	views    []quota.View
	uses     []int            // how many drafts need each view; a view that none needs any more is dropped
	deciders []*quota.Decider // of the views of which something of this order was refused
	existing map[uuid.UUID]push.Push
	requests map[uuid.UUID][]byte // the hash of the request that bore an Idempotency-Key, by its id
	granted  []push.Push
	usage    [][]quota.Usage // how full the rules are with each of the granted

	reading *reading          // brings the views; nil: they are there
	locked  []int64           // keys whose locks others have
	crowded []quota.Recipient // of whom not all bookings were read
}

// shared judges orders of single drafts, but for those that can not share the
// transaction.
func (j *judge) shared(orders []Order) [][]Verdict {
	verdicts := make([][]Verdict, len(orders))
	for i, o := range orders {
		d := o.Drafts[0]
		j.view(d)
		if j.isLocked(d) || slices.Contains(j.crowded, d.recipient()) {
			verdicts[i] = []Verdict{{Judgement: notShared}}
			continue
		}
		verdicts[i] = j.order(o)
	}
	return verdicts
}

// isLocked reports whether somebody else has a lock that a draft needs.
func (j *judge) isLocked(d Draft) bool {
	return len(j.locked) > 0 && (slices.Contains(j.locked, push.RecipientKey(d.Push.Tenant, d.Push.Recipient)) ||
		d.Push.IdempotencyID != uuid.Nil && slices.Contains(j.locked, requestLock(d.Push.IdempotencyID)))
}

// view returns what is known of a draft's recipient.
func (j *judge) view(d Draft) *quota.View {
	i := j.at[d.recipient()]
	if j.reading != nil {
		j.reading.until(i)
	}
	return &j.views[i]
}

// order judges all drafts of an order. If it is to leave nothing behind, what
// was granted is taken back. An order under an Idempotency-Key that served
// another one leaves nothing, even where it has more drafts than that one; nor
// does one that is to come again with another day counted.
func (j *judge) order(o Order) []Verdict {
	before := len(j.granted)
	j.deciders = nil
	verdicts := make([]Verdict, len(o.Drafts))
	all, nothing := true, o.DryRun
	left := o.Allowance.clone()
	for i, d := range o.Drafts {
		v := &verdicts[i]
		*v = j.draft(d, o, left)
		if v.Judgement == Refused && !v.Complete {
			v.Granted = bookingsFor(d.recipient(), j.granted[before:])
		}
		j.leave(d)
		nothing = nothing || v.Judgement == KeyReused || v.Judgement == Uncounted
		all = all && (v.Judgement == Booked || v.Judgement == Replayed)
	}
	if nothing || o.Atomic && !all {
		j.takeBack(j.granted[before:])
		j.granted, j.usage = j.granted[:before], j.usage[:before]
	}
	return verdicts
}

// leave drops the view of a recipient that no other draft is for.
func (j *judge) leave(d Draft) {
	i := j.at[d.recipient()]
	if j.uses == nil || j.reading != nil && j.reading.spans[i].keep {
		return
	}
	if j.uses[i]--; j.uses[i] == 0 {
		j.views[i] = quota.View{}
	}
}

// bookingsFor returns the bookings of pushes for one recipient.
func bookingsFor(r quota.Recipient, pushes []push.Push) []quota.Booking {
	var bookings []quota.Booking
	for _, p := range pushes {
		if p.Recipient == r.ID && p.Tenant == r.Tenant {
			bookings = append(bookings, quota.Booking{ID: p.ID, At: p.SendAt})
		}
	}
	return bookings
}

// draft judges one draft: a request seen before, a place, a later place, or none.
func (j *judge) draft(d Draft, o Order, left *Allowance) Verdict {
	p, policy := d.Push, o.Policy
	view := j.view(d)
	if hash, ok := j.requests[p.IdempotencyID]; ok && !bytes.Equal(hash, p.IdempotencyHash) {
		return Verdict{Judgement: KeyReused}
	}
	if old, ok := j.existing[p.ID]; ok {
		if old.Tenant != p.Tenant {
			return Verdict{Judgement: KeyReused}
		}
		if p.IdempotencyID != uuid.Nil {
			return Verdict{Judgement: Replayed, Push: old}
		}
		return j.booked(old, d, policy) // committed by a run whose reply was lost
	}
	if !policy.Allows(view.Timeline, p.SendAt) {
		if d.Latest.IsZero() {
			return j.refused(d, o)
		}
		next, ok := policy.Next(view.Timeline, p.SendAt, quota.Second)
		if !ok || next.After(d.Latest) {
			return j.refused(d, o)
		}
		p.SendAt = next
	}
	newcomer := left.newcomer(view, p.SendAt)
	if judgement, full := left.take(view, p.SendAt); judgement != Booked {
		return Verdict{Judgement: judgement, Capped: full}
	}
	j.grant(d, &p, o.Arm)
	v := j.booked(p, d, policy)
	v.Newcomer = newcomer
	j.usage = append(j.usage, v.Usage)
	return v
}

// refused tells why a draft has no place.
func (j *judge) refused(d Draft, o Order) Verdict {
	v := Verdict{Judgement: Refused}
	if j.deciders == nil {
		j.deciders = make([]*quota.Decider, len(j.views))
	}
	decider := &j.deciders[j.at[d.recipient()]]
	if *decider == nil {
		*decider = &quota.Decider{Policy: o.Policy, Now: o.Now}
	}
	v.Decision, v.Complete = (*decider).Decide(*j.view(d), d.Push.SendAt)
	j.show(&v, d)
	return v
}

// show has a verdict show the view, if it is wanted.
func (j *judge) show(v *Verdict, d Draft) {
	if d.Since.IsZero() {
		return
	}
	view := j.view(d)
	if v.Crowded = view.Len() > ownRows; !v.Crowded {
		v.View = quota.View{From: view.From, Until: view.Until, Timeline: view.Clone()}
	}
}

// changed says that the view of a recipient is another one now.
func (j *judge) changed(i int) {
	if j.deciders != nil && j.deciders[i] != nil {
		j.deciders[i].Changed()
	}
}

// booked tells of a push that is among the bookings of its recipient.
func (j *judge) booked(p push.Push, d Draft, policy quota.Policy) Verdict {
	v := Verdict{Judgement: Booked, Push: p, Usage: policy.Usage(j.view(d).Timeline, p.SendAt)}
	j.show(&v, d)
	return v
}

// move judges the new time of an existing push, whose own place is no
// obstacle to it.
func (j *judge) move(d Draft, o Order) (Verdict, error) {
	p, ok := j.existing[d.Push.ID]
	switch {
	case !ok || p.Tenant != d.Push.Tenant:
		return Verdict{}, push.ErrNotFound
	case p.Status != push.Scheduled:
		return Verdict{Push: p}, push.ErrNotReschedulable
	}
	view := j.view(d)
	view.Timeline = view.Remove(quota.Booking{ID: p.ID, At: p.SendAt})
	if !o.Policy.Allows(view.Timeline, d.Push.SendAt) {
		v := j.refused(d, o)
		v.Push = p
		return v, nil
	}
	newcomer := DayOf(p.SendAt) != DayOf(d.Push.SendAt) && o.Allowance.newcomer(view, d.Push.SendAt)
	if newcomer {
		if judgement, full := o.Allowance.clone().takeDay(view, d.Push.SendAt); judgement != Booked {
			return Verdict{Judgement: judgement, Push: p, Capped: full}, nil
		}
	}
	gen, created := p.Gen, p.CreatedAt
	p.SendAt, p.RequestedSendAt, p.ArmedUntil = d.Push.SendAt, d.Push.RequestedSendAt, time.Time{}
	j.grant(d, &p, o.Arm)
	p.Gen, p.CreatedAt = gen+1, created
	return Verdict{Judgement: Booked, Push: p, Usage: o.Policy.Usage(view.Timeline, p.SendAt), Newcomer: newcomer}, nil
}

// grant completes the push and adds it to what is to be stored.
func (j *judge) grant(d Draft, p *push.Push, arm time.Duration) {
	p.NextAt, p.Status, p.Gen = p.SendAt, push.Scheduled, 1
	p.CreatedAt, p.UpdatedAt = j.now, j.now
	if p.TTL > 0 {
		p.ExpiresAt = p.SendAt.Add(p.TTL)
	}
	if p.SendAt.Before(j.now.Add(arm)) {
		p.ArmedUntil = j.now.Add(3 * arm) // should its caller fail to, the promoter does then
	}
	view := j.view(d)
	view.Timeline = view.Insert(quota.Booking{ID: p.ID, At: p.SendAt})
	j.changed(j.at[d.recipient()])
	j.granted = append(j.granted, *p)
	if p.IdempotencyID != uuid.Nil {
		j.know(*p)
	}
}

// know notes a push that exists, for those who ask for it again.
func (j *judge) know(p push.Push) {
	j.existing[p.ID] = p
	if p.IdempotencyID != uuid.Nil {
		j.requests[p.IdempotencyID] = p.IdempotencyHash
	}
}

func (j *judge) takeBack(granted []push.Push) {
	for _, p := range granted {
		i := j.at[quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}]
		j.views[i].Timeline = j.views[i].Remove(quota.Booking{ID: p.ID, At: p.SendAt})
		j.changed(i)
		delete(j.existing, p.ID)
		delete(j.requests, p.IdempotencyID)
	}
	for _, p := range j.existing { // a part of the order may have been there before
		j.know(p)
	}
}
