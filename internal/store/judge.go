package store

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/faults"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// judge decides orders one after another, under the locks of all recipients
// concerned. It grows the recipients' views by what it grants.
type judge struct {
	now      time.Time
	at       map[quota.Recipient]int
	views    []quota.View
	existing map[uuid.UUID]push.Push
	requests map[uuid.UUID][]byte // the hash of the request that bore an Idempotency-Key, by its id
	granted  []push.Push
	usage    [][]quota.Usage // how full the rules are with each of the granted
}

// order judges all drafts of an order. If it is to leave nothing behind, what
// was granted is taken back. An order under an Idempotency-Key that served
// another one leaves nothing, even where it has more drafts than that one; nor
// does one that is to come again with another day counted.
func (j *judge) order(o Order) []Verdict {
	before := len(j.granted)
	verdicts := make([]Verdict, len(o.Drafts))
	all, nothing := true, o.DryRun
	left := o.Allowance.clone()
	for i, d := range o.Drafts {
		verdicts[i] = j.draft(d, o, left)
		nothing = nothing || verdicts[i].Judgement == KeyReused || verdicts[i].Judgement == Uncounted
		all = all && (verdicts[i].Judgement == Booked || verdicts[i].Judgement == Replayed)
	}
	if nothing || o.Atomic && !all {
		j.takeBack(j.granted[before:])
		j.granted, j.usage = j.granted[:before], j.usage[:before]
	}
	return verdicts
}

// draft judges one draft: a request seen before, a place, a later place, or none.
func (j *judge) draft(d Draft, o Order, left *Allowance) Verdict {
	p, policy := d.Push, o.Policy
	view := &j.views[j.at[quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}]]
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
		return booked(old, d, policy, *view) // committed by a run whose reply was lost
	}
	if len(policy.Violations(view.Bookings, p.SendAt)) > 0 && !faults.Off(faults.Judge) {
		next, ok := policy.Next(view.Bookings, p.SendAt, quota.Second)
		if d.Latest.IsZero() || !ok || next.After(d.Latest) {
			return Verdict{Judgement: Refused, View: snapshot(*view)}
		}
		p.SendAt = next
	}
	newcomer := left.newcomer(view, p.SendAt)
	if judgement, full := left.take(view, p.SendAt); judgement != Booked {
		return Verdict{Judgement: judgement, Capped: full}
	}
	j.grant(view, &p, o.Arm)
	v := booked(p, d, policy, *view)
	v.Newcomer = newcomer
	j.usage = append(j.usage, v.Usage)
	return v
}

// booked tells of a push that is among the bookings of the view.
func booked(p push.Push, d Draft, policy quota.Policy, view quota.View) Verdict {
	v := Verdict{Judgement: Booked, Push: p, Usage: policy.Usage(view.Bookings, p.SendAt)}
	if !d.Since.IsZero() {
		v.View = snapshot(view)
	}
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
	view := &j.views[j.at[quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}]]
	view.Bookings = slices.DeleteFunc(view.Bookings, func(b quota.Booking) bool { return b.ID == p.ID })
	if len(o.Policy.Violations(view.Bookings, d.Push.SendAt)) > 0 && !faults.Off(faults.Judge) {
		return Verdict{Judgement: Refused, Push: p, View: *view}, nil
	}
	newcomer := DayOf(p.SendAt) != DayOf(d.Push.SendAt) && o.Allowance.newcomer(view, d.Push.SendAt)
	if newcomer {
		if judgement, full := o.Allowance.clone().takeDay(view, d.Push.SendAt); judgement != Booked {
			return Verdict{Judgement: judgement, Push: p, Capped: full}, nil
		}
	}
	gen, created := p.Gen, p.CreatedAt
	p.SendAt, p.RequestedSendAt, p.ArmedUntil = d.Push.SendAt, d.Push.RequestedSendAt, time.Time{}
	j.grant(view, &p, o.Arm)
	p.Gen, p.CreatedAt = gen+1, created
	return Verdict{Judgement: Booked, Push: p, Usage: o.Policy.Usage(view.Bookings, p.SendAt), Newcomer: newcomer}, nil
}

// grant completes the push and adds it to what is to be stored.
func (j *judge) grant(view *quota.View, p *push.Push, arm time.Duration) {
	p.NextAt, p.Status, p.Gen = p.SendAt, push.Scheduled, 1
	p.CreatedAt, p.UpdatedAt = j.now, j.now
	if p.TTL > 0 {
		p.ExpiresAt = p.SendAt.Add(p.TTL)
	}
	if p.SendAt.Before(j.now.Add(arm)) {
		p.ArmedUntil = j.now.Add(3 * arm) // should its caller fail to, the promoter does then
	}
	view.Bookings = quota.Insert(view.Bookings, quota.Booking{ID: p.ID, At: p.SendAt})
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
		view := &j.views[j.at[quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}]]
		view.Bookings = slices.DeleteFunc(view.Bookings, func(b quota.Booking) bool { return b.ID == p.ID })
		delete(j.existing, p.ID)
		delete(j.requests, p.IdempotencyID)
	}
	for _, p := range j.existing { // a part of the order may have been there before
		j.know(p)
	}
}

// snapshot keeps a view from changing under its reader.
func snapshot(v quota.View) quota.View {
	v.Bookings = slices.Clone(v.Bookings)
	return v
}
