package booking

import (
	"bytes"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Decider decides orders one after another. Each order sees the bookings of the earlier ones.
type Decider struct {
	// Granted lists the decisions that are to be stored: new and moved pushes.
	Granted []*Decision

	now        time.Time
	views      Views
	own        func(tenant uuid.UUID, channel string) OwnChannel
	terms      map[uuid.UUID]Terms
	people     map[quota.Recipient]Person
	suppressed map[int64]suppression.Entry // see Snapshot
	existing   map[uuid.UUID]push.Push
	requests   map[uuid.UUID]*request // requests with an Idempotency-Key, by key id
	refusals   map[quota.Recipient]refusals
}

// refusals caches the decisions about refused pushes to one recipient, by kind.
type refusals map[quota.Kind]*quota.Decider

// NewDecider returns a decider that starts from a snapshot.
func NewDecider(s Snapshot) *Decider {
	x := &Decider{now: s.Now, views: s.Views, own: s.Own, terms: s.Terms, people: s.People, suppressed: s.Suppressed, existing: make(map[uuid.UUID]push.Push, len(s.Existing)), requests: make(map[uuid.UUID]*request, len(s.Keyed))}
	for _, p := range s.Existing {
		x.existing[p.ID] = p
	}
	for _, k := range s.Keyed {
		x.know(k)
	}
	return x
}

// Now returns the time of the snapshot.
func (x *Decider) Now() time.Time { return x.now }

// standing returns the terms and the recipient's data that apply to a draft.
func (x *Decider) standing(o *Order, who quota.Recipient) Standing {
	return Standing{Terms: OrNone(x.terms[who.Tenant], o.Policy), Person: x.people[who]}
}

// Book decides all drafts of an order. If [Order.Books] is false, it takes all grants back.
func (x *Decider) Book(o Order) []Decision {
	before := len(x.Granted)
	x.refusals = nil
	decisions := make([]Decision, len(o.Drafts))
	if len(o.Drafts) > 1 {
		x.Granted = slices.Grow(x.Granted, len(o.Drafts))
	}
	usage := o.CapUsage.clone()
	for i := range o.Drafts {
		d, v := &o.Drafts[i], &decisions[i]
		of := x.standing(&o, d.Recipient())
		x.book(v, d, &o, of, usage)
		if v.Outcome != Booked && v.Outcome != Replayed {
			v.Push.Level = LevelOf(of.Terms, &d.Push)
		}
		if v.Outcome == NoPlace && !v.Complete {
			v.Granted = bookingsFor(of.Terms, d.Recipient(), x.Granted[before:])
		}
		x.views.Done(d.Recipient())
	}
	if !o.Books(decisions) {
		x.takeBack(before)
	}
	return decisions
}

// book decides one draft: repeated request, requested time, later free time, or refusal. v is the decision that is returned and
// stored, empty: decisions are large to copy.
func (x *Decider) book(v *Decision, d *Draft, o *Order, of Standing, usage *CapUsage) {
	p, view := &d.Push, x.views.View(d.Recipient())
	if d.LookOnly {
		v.Outcome = Undecided
		return
	}
	if x.repeated(v, d, of, view) {
		return
	}
	first, known := x.first(d)
	if x.permitted(v, d, of, known); v.Outcome != Booked {
		return
	}
	policy := of.Policy(KindOf(p))
	at, outcome := d.freeTime(policy, view)
	switch outcome {
	case NoPlace:
		*v = x.refused(d, o, policy, view)
		return
	case Unseen:
		v.Outcome = Unseen
		return
	}
	v.NewRecipientOfDay = usage.newRecipientOfDay(view, at)
	if v.Outcome, v.Capped = usage.take(at, v.NewRecipientOfDay); v.Outcome != Booked {
		v.NewRecipientOfDay = false
		return
	}
	v.Push = *p
	v.Push.SendAt, v.Push.CreatedAt, v.Push.Gen = at, x.now, 1
	v.Shadow = of.shadow(&v.Push, view)
	if first != nil {
		v.First, v.By = first, d.By
		x.retried(*first, p.ID)
	}
	x.grant(v, d, of.Terms, policy, view)
}

// repeated reports whether a draft repeats an earlier request, or a run of the transaction whose reply was lost. It decides then.
func (x *Decider) repeated(v *Decision, d *Draft, of Standing, view *quota.View) bool {
	p := &d.Push
	if r := x.requests[p.IdempotencyID]; r != nil {
		id, made := r.made[p.RequestMember]
		switch {
		case r.tenant != p.Tenant || !bytes.Equal(r.hash, p.IdempotencyHash):
			v.Outcome = KeyReused
			return true
		case made:
			v.Outcome, v.Push.ID, v.Push.Tenant = Replayed, id, r.tenant
			return true
		}
	}
	old, ok := x.existing[p.ID]
	switch {
	case !ok:
		return false
	case old.Tenant != p.Tenant:
		v.Outcome = KeyReused
	default:
		v.Outcome, v.Push = Booked, old
		v.showUsage(d, of.Policy(KindOf(p)), view)
	}
	return true
}

// Move decides about a new time for an existing push, the order's only draft. The push's own booking does not count
// against it. If [Order.Books] is false, the push stays. The errors are [push.ErrNotFound], and [push.ErrMoved] and
// [push.ErrNotReschedulable], which come with the push.
func (x *Decider) Move(o Order) (Decision, error) {
	d := o.Drafts[0]
	p, ok := x.existing[d.Push.ID]
	switch {
	case !ok || p.Tenant != d.Push.Tenant:
		return Decision{}, push.ErrNotFound
	case !d.Was.IsZero() && !p.SendAt.Equal(d.Was):
		return Decision{Push: p}, push.ErrMoved
	case p.Status != push.Scheduled:
		return Decision{Push: p}, push.ErrNotReschedulable
	}
	view, of := x.views.View(d.Recipient()), x.standing(&o, d.Recipient())
	view.Timeline = view.Remove(quota.Booking{ID: p.ID, At: p.SendAt})
	if unwanted := of.Person.OptOuts.Of(KindOf(&p)); unwanted.Any() {
		return Decision{Outcome: OptedOut, Push: p, OptOuts: unwanted}, nil
	}
	policy := of.Policy(KindOf(&p))
	to, outcome := d.freeTime(policy, view)
	switch outcome {
	case NoPlace:
		v := x.refused(&d, &o, policy, view)
		v.Push = p
		return v, nil
	case Unseen:
		return Decision{Outcome: Unseen, Push: p}, nil
	}
	newRecipient := DayOf(p.SendAt) != DayOf(to) && o.CapUsage.newRecipientOfDay(view, to)
	if newRecipient {
		if outcome, capped := o.CapUsage.clone().takeDay(to); outcome != Booked {
			return Decision{Outcome: outcome, Push: p, Capped: capped}, nil
		}
	}
	p.SendAt, p.RequestedSendAt, p.Burst, p.Gen = to, d.Push.RequestedSendAt, d.Push.Burst, p.Gen+1
	v := Decision{Outcome: Booked, Push: p, NewRecipientOfDay: newRecipient}
	x.grant(&v, &d, of.Terms, policy, view)
	if !o.Books([]Decision{v}) {
		x.takeBack(0)
	}
	return v, nil
}

// grant books the push of a decision, which then waits for its send time. The decision is stored.
func (x *Decider) grant(v *Decision, d *Draft, terms Terms, policy quota.Policy, view *quota.View) {
	p := &v.Push
	p.NextAt, p.Status, p.UpdatedAt, p.Level = p.SendAt, push.Scheduled, x.now, LevelOf(terms, p)
	if p.TTL > 0 {
		p.ExpiresAt = p.SendAt.Add(p.TTL)
	}
	view.Timeline = view.Insert(Under(terms, p))
	x.changed(d.Recipient())
	if p.IdempotencyID != uuid.Nil { // another order may repeat the request
		x.know(keyedOf(*p))
	}
	v.showUsage(d, policy, view)
	x.Granted = append(x.Granted, v)
}

// showUsage adds to the decision how full each rule is around its push, and what the draft asks for.
func (v *Decision) showUsage(d *Draft, policy quota.Policy, view *quota.View) {
	v.Usage = policy.Usage(view.Timeline, v.Push.SendAt)
	v.show(view, d)
}

// refused returns the decision for a draft without a free time.
func (x *Decider) refused(d *Draft, o *Order, policy quota.Policy, view *quota.View) Decision {
	of := x.refusals[d.Recipient()]
	if of == nil {
		if x.refusals == nil {
			x.refusals = map[quota.Recipient]refusals{}
		}
		of = refusals{}
		x.refusals[d.Recipient()] = of
	}
	kind := KindOf(&d.Push)
	decider := of[kind]
	if decider == nil {
		decider = &quota.Decider{Policy: policy, Now: o.Now}
		of[kind] = decider
	}
	v := Decision{Outcome: NoPlace}
	v.Quota, v.Complete = decider.Decide(*view, d.Push.SendAt)
	v.show(view, d)
	return v
}

// show adds the recipient's bookings to the decision if the draft asks for them.
func (v *Decision) show(view *quota.View, d *Draft) {
	if !d.Show {
		return
	}
	if v.Crowded = view.Len() > Crowd; !v.Crowded {
		v.Bookings = view.Bookings()
	}
}

// changed resets the cached decisions of a recipient whose bookings have changed.
func (x *Decider) changed(r quota.Recipient) {
	for _, decider := range x.refusals[r] {
		decider.Changed()
	}
}

// takeBack undoes all grants after the first n.
func (x *Decider) takeBack(n int) {
	for _, g := range x.Granted[n:] {
		r := quota.Recipient{Tenant: g.Push.Tenant, ID: g.Push.Recipient}
		view := x.views.View(r)
		view.Timeline = view.Remove(quota.Booking{ID: g.Push.ID, At: g.Push.SendAt})
		x.changed(r)
		if g.Push.IdempotencyID != uuid.Nil {
			x.forget(keyedOf(g.Push))
		}
		if g.First != nil {
			x.retried(*g.First, g.First.Retry.Latest)
		}
	}
	x.Granted = x.Granted[:n]
}

// bookingsFor returns the granted bookings of one recipient.
func bookingsFor(t Terms, r quota.Recipient, granted []*Decision) []quota.Booking {
	var bookings []quota.Booking
	for _, g := range granted {
		if p := &g.Push; p.Recipient == r.ID && p.Tenant == r.Tenant {
			bookings = append(bookings, Under(t, p))
		}
	}
	return bookings
}
