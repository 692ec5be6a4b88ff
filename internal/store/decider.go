package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// decider decides orders one after another, under the locks of all recipients
// concerned. It grows the recipients' views by what it grants.
type decider struct {
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

// shared decides orders of single drafts, but for those that can not share the
// transaction.
func (j *decider) shared(orders []Order) [][]Decision {
	decisions := make([][]Decision, len(orders))
	for i, o := range orders {
		d := o.Drafts[0]
		j.view(d)
		if j.isLocked(d) || slices.Contains(j.crowded, d.recipient()) {
			decisions[i] = []Decision{{Outcome: notShared}}
			continue
		}
		decisions[i] = j.order(o)
	}
	return decisions
}

// isLocked reports whether somebody else has a lock that a draft needs.
func (j *decider) isLocked(d Draft) bool {
	return len(j.locked) > 0 && (slices.Contains(j.locked, push.RecipientKey(d.Push.Tenant, d.Push.Recipient)) ||
		d.Push.IdempotencyID != uuid.Nil && slices.Contains(j.locked, requestLock(d.Push.IdempotencyID)))
}

// view returns what is known of a draft's recipient.
func (j *decider) view(d Draft) *quota.View {
	i := j.at[d.recipient()]
	if j.reading != nil {
		j.reading.until(i)
	}
	return &j.views[i]
}

// order decides all drafts of an order. If it is to leave nothing behind, what
// was granted is taken back. An order under an Idempotency-Key that served
// another one leaves nothing, even where it has more drafts than that one; nor
// does one that is to come again with another day counted.
func (j *decider) order(o Order) []Decision {
	before := len(j.granted)
	j.deciders = nil
	decisions := make([]Decision, len(o.Drafts))
	all, nothing := true, o.DryRun
	left := o.CapUsage.clone()
	for i, d := range o.Drafts {
		v := &decisions[i]
		*v = j.draft(d, o, left)
		if v.Outcome == Refused && !v.Complete {
			v.Granted = bookingsFor(d.recipient(), j.granted[before:])
		}
		j.leave(d)
		nothing = nothing || v.Outcome == KeyReused || v.Outcome == Uncounted
		all = all && (v.Outcome == Booked || v.Outcome == Replayed)
	}
	if nothing || o.Atomic && !all {
		j.takeBack(j.granted[before:])
		j.granted, j.usage = j.granted[:before], j.usage[:before]
	}
	return decisions
}

// leave drops the view of a recipient that no other draft is for.
func (j *decider) leave(d Draft) {
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

// draft decides one draft: a request seen before, a place, a later place, or none.
func (j *decider) draft(d Draft, o Order, left *CapUsage) Decision {
	p, policy := d.Push, o.Policy
	view := j.view(d)
	if hash, ok := j.requests[p.IdempotencyID]; ok && !bytes.Equal(hash, p.IdempotencyHash) {
		return Decision{Outcome: KeyReused}
	}
	if old, ok := j.existing[p.ID]; ok {
		if old.Tenant != p.Tenant {
			return Decision{Outcome: KeyReused}
		}
		if p.IdempotencyID != uuid.Nil {
			return Decision{Outcome: Replayed, Push: old}
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
	newRecipientOfDay := left.newRecipientOfDay(view, p.SendAt)
	if outcome, full := left.take(view, p.SendAt); outcome != Booked {
		return Decision{Outcome: outcome, Capped: full}
	}
	j.grant(d, &p, o.Arm)
	v := j.booked(p, d, policy)
	v.NewRecipientOfDay = newRecipientOfDay
	j.usage = append(j.usage, v.Usage)
	return v
}

// refused tells why a draft has no place.
func (j *decider) refused(d Draft, o Order) Decision {
	v := Decision{Outcome: Refused}
	if j.deciders == nil {
		j.deciders = make([]*quota.Decider, len(j.views))
	}
	decider := &j.deciders[j.at[d.recipient()]]
	if *decider == nil {
		*decider = &quota.Decider{Policy: o.Policy, Now: o.Now}
	}
	v.Quota, v.Complete = (*decider).Decide(*j.view(d), d.Push.SendAt)
	j.show(&v, d)
	return v
}

// show has a decision show the view, if it is wanted.
func (j *decider) show(v *Decision, d Draft) {
	if d.Since.IsZero() {
		return
	}
	view := j.view(d)
	if v.Crowded = view.Len() > ownRows; !v.Crowded {
		v.View = quota.View{From: view.From, Until: view.Until, Timeline: view.Clone()}
	}
}

// changed says that the view of a recipient is another one now.
func (j *decider) changed(i int) {
	if j.deciders != nil && j.deciders[i] != nil {
		j.deciders[i].Changed()
	}
}

// booked tells of a push that is among the bookings of its recipient.
func (j *decider) booked(p push.Push, d Draft, policy quota.Policy) Decision {
	v := Decision{Outcome: Booked, Push: p, Usage: policy.Usage(j.view(d).Timeline, p.SendAt)}
	j.show(&v, d)
	return v
}

// move decides the new time of an existing push, whose own place is no
// obstacle to it.
func (j *decider) move(d Draft, o Order) (Decision, error) {
	p, ok := j.existing[d.Push.ID]
	switch {
	case !ok || p.Tenant != d.Push.Tenant:
		return Decision{}, push.ErrNotFound
	case p.Status != push.Scheduled:
		return Decision{Push: p}, push.ErrNotReschedulable
	}
	view := j.view(d)
	view.Timeline = view.Remove(quota.Booking{ID: p.ID, At: p.SendAt})
	if !o.Policy.Allows(view.Timeline, d.Push.SendAt) {
		v := j.refused(d, o)
		v.Push = p
		return v, nil
	}
	newRecipientOfDay := DayOf(p.SendAt) != DayOf(d.Push.SendAt) && o.CapUsage.newRecipientOfDay(view, d.Push.SendAt)
	if newRecipientOfDay {
		if outcome, full := o.CapUsage.clone().takeDay(view, d.Push.SendAt); outcome != Booked {
			return Decision{Outcome: outcome, Push: p, Capped: full}, nil
		}
	}
	gen, created := p.Gen, p.CreatedAt
	p.SendAt, p.RequestedSendAt, p.ArmedUntil = d.Push.SendAt, d.Push.RequestedSendAt, time.Time{}
	j.grant(d, &p, o.Arm)
	p.Gen, p.CreatedAt = gen+1, created
	return Decision{Outcome: Booked, Push: p, Usage: o.Policy.Usage(view.Timeline, p.SendAt), NewRecipientOfDay: newRecipientOfDay}, nil
}

// grant completes the push and adds it to what is to be stored.
func (j *decider) grant(d Draft, p *push.Push, arm time.Duration) {
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
func (j *decider) know(p push.Push) {
	j.existing[p.ID] = p
	if p.IdempotencyID != uuid.Nil {
		j.requests[p.IdempotencyID] = p.IdempotencyHash
	}
}

func (j *decider) takeBack(granted []push.Push) {
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
