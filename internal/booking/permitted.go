package booking

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// permitted returns Booked, or why a draft is refused at any time. knownFirst is whether the push that it retries is the latest.
func (x *Decider) permitted(d *Draft, of Standing, knownFirst bool) (Outcome, OptOuts) {
	switch unwanted := of.Person.OptOuts.Of(KindOf(&d.Push)); {
	case !knownFirst:
		return Retried, OptOuts{}
	case !x.hasChannel(d):
		return NoChannel, OptOuts{}
	case unwanted.Any():
		return OptedOut, unwanted
	case d.NeedsAddress && d.Push.To == "" && of.Person.Addresses[d.Push.Channel] == "":
		return NoAddress, OptOuts{}
	}
	return Booked, OptOuts{}
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
