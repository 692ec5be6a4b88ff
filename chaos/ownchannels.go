package main

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
)

// The channels that the tenant makes. The operator has a channel of the first name, too, which gets none of the tenant's pushes; the second
// one is deleted with the pushes that are booked for it.
const ownHidden, ownDoomed = "hidden", "doomed"

// ofOwnChannel reports whether a point is on the way of a change of a tenant's channel.
func ofOwnChannel(p failpoint.Point) bool { return p == failpoint.ChannelLocked }

// putChannel creates or changes a channel of the tenant.
func (c *caller) putChannel(name string, timeout time.Duration, disabled bool) {
	body := object{
		"type": "webhook", "url": c.b.provider.URL() + "?own", "secret": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "disabled": disabled,
		"timeout": timeout.String(), "max_attempts": 20, "backoff": object{"first": "200ms", "max": "800ms"},
	}
	if a, _ := c.insist(c.b.Context(), "PUT", "/v1/channels/"+name, "", body); a.status != 200 && a.status != 201 {
		c.b.Fatalf("the channel %s is not stored: %d %s", name, a.status, a.body.Type)
	}
}

// makeChannels makes channels of the tenant, and books pushes for them. The returned function changes the first one while they are sent, and
// deletes the second one.
func (b *bundle) makeChannels() (change func()) {
	c := b.newCaller()
	c.putChannel(ownHidden, 300*time.Millisecond, false)
	c.putChannel(ownDoomed, 300*time.Millisecond, false)
	now := time.Now().Truncate(time.Second)
	for i := range 12 {
		name := fmt.Sprint("own-", i)
		c.submit(b.Context(), name, ownHidden, name, now.Add(time.Duration(2+i/2)*time.Second))
	}
	for i := range 5 {
		name := fmt.Sprint("doomed-", i)
		c.submit(b.Context(), name, ownDoomed, name, now.Add(time.Hour))
	}
	return func() {
		c.putChannel(ownHidden, 350*time.Millisecond, true) // what is due waits
		for {
			a, _ := c.insist(b.Context(), "DELETE", "/v1/channels/"+ownDoomed+"?pushes=cancel", "", nil)
			if a.status == 200 || a.status == 404 { // 404: its answer was lost
				break
			}
			if a.status != 409 { // an attempt under way did not end in time
				b.Fatalf("the channel is not deleted: %d %s", a.status, a.body.Type)
			}
		}
		c.putChannel(ownHidden, 400*time.Millisecond, false)
	}
}

// ownChannelsHold checks I11: that no push for a tenant's channel went through the operator's of the same name, and that a deleted channel has
// left no push.
func (j *findings) ownChannelsHold() {
	for _, a := range j.facts.arrivals {
		switch r := j.facts.rows[a.Push]; {
		case r.Channel == ownHidden && !a.Own:
			j.broken("I11", "push %s of %s went through the operator's channel", a.Push, a.Recipient)
		case r.Channel == ownDoomed:
			j.broken("I11", "push %s of %s went out, although its channel was deleted", a.Push, a.Recipient)
		}
	}
	for _, r := range j.facts.rows {
		if r.Channel == ownDoomed && (r.Status != "canceled" || r.LastError != "channel-deleted") {
			j.broken("I11", "push %s of %s is %s (%s), although its channel was deleted", r.ID, r.Recipient, r.Status, r.LastError)
		}
	}
}

// changedChannels changes the tenant's channels while pushes are due for them.
func changedChannels(b *bundle, _ *caller) {
	change := b.makeChannels()
	b.startWorker(nil)
	change()
}
