package booking

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// permitted sets the outcome of a decision to Booked, or to why the draft is refused at any time. knownFirst is whether the push that it
// retries is the latest.
func (x *Decider) permitted(v *Decision, d *Draft, of Standing, knownFirst bool) {
	switch unwanted := of.Person.OptOuts.Of(KindOf(&d.Push)); {
	case !knownFirst:
		v.Outcome = Retried
	case !x.hasChannel(d):
		v.Outcome = NoChannel
	case unwanted.Any():
		v.Outcome, v.OptOuts = OptedOut, unwanted
	case d.NeedsAddress && of.Person.AddressOf(&d.Push) == "":
		v.Outcome = NoAddress
	default:
		v.Outcome = Booked
		if v.Suppression = SuppressionOf(x.suppressed, &d.Push, &of.Person); v.Suppression != nil {
			v.Outcome = Suppressed
		}
	}
}

// SuppressionOf returns the suppression of the address that a push goes to, or nil. all has the suppressed addresses, by key.
func SuppressionOf(all map[int64]suppression.Entry, p *push.Push, of *Person) *suppression.Entry {
	if len(all) == 0 {
		return nil
	}
	if e, ok := all[suppression.KeyOf(p.Tenant, p.Channel, of.AddressOf(p))]; ok {
		return &e
	}
	return nil
}

// hasChannel reports whether the channel of a draft still exists, and is not being deleted.
func (x *Decider) hasChannel(d *Draft) bool {
	own := OwnChannel{}
	if x.own != nil {
		own = x.own(d.Push.Tenant, d.Push.Channel)
	}
	return !own.Deleting && (own.Version > 0 || !d.OwnOnly)
}

// first returns the first push of the chain that a draft retries; nil if the draft is no retry. It is false if that
// push is no longer stored, or was retried again since the caller read it.
func (x *Decider) first(d *Draft) (*push.Push, bool) {
	if d.Retried == nil {
		return nil, true
	}
	p, ok := x.existing[d.Push.Retry.First]
	return &p, ok && p.Tenant == d.Push.Tenant && p.Recipient == d.Push.Recipient && p.Retry.Latest == *d.Retried
}

// retried records the latest retry of a push, for later drafts that retry it as well.
func (x *Decider) retried(first push.Push, latest uuid.UUID) {
	first.Retry.Latest = latest
	x.existing[first.ID] = first
}
