package delivery

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// holds decides which tenants' pushes may be tried through a channel. Each tenant has its own breaker, for its failures
// and for pauses that the provider asked for. The channel's breaker opens only when two tenants have the same trouble:
// one tenant may own the failing device, address or endpoint, and must not stop the others.
type holds struct {
	all     breaker                      // of the channel
	apart   bool                         // each tenant has a channel of its own: all stays closed
	tenants map[uuid.UUID]*tenantBreaker // without closed ones whose last attempt worked
	run     failureRun
}

// tenantBreaker is the breaker of one tenant's pushes through a channel.
type tenantBreaker struct {
	breaker
	tried int       // recipients let through, without a result yet, while it tries again
	again time.Time // when more are let through even without a result: the earlier ones may have had nothing to send
}

// failureRun is the run of failed attempts since one worked, or since the channel opened.
type failureRun struct {
	first   uuid.UUID // the tenant of the first failure
	begun   bool
	several bool // other tenants have failed since
}

const (
	// After forgetHold without an attempt, a tenant is no longer tried carefully.
	forgetHold = time.Minute
	// maxViewed bounds the held tenants that a worker shows for each channel.
	maxViewed = 100
)

func newHolds(first, longest time.Duration) holds {
	return holds{all: breaker{first: first, longest: longest}, tenants: map[uuid.UUID]*tenantBreaker{}}
}

// of returns the breaker of a tenant, and creates it if there is none.
func (h *holds) of(tenant uuid.UUID) *tenantBreaker {
	b := h.tenants[tenant]
	if b == nil {
		b = &tenantBreaker{breaker: breaker{first: h.all.first, longest: h.all.longest}}
		h.tenants[tenant] = b
	}
	return b
}

// ended records the result of a tenant's attempt.
func (h *holds) ended(tenant uuid.UUID, failed bool, now time.Time) {
	if failed || h.tenants[tenant] != nil {
		b := h.of(tenant)
		b.ended(failed, true, now)
		if b.tried = max(b.tried-1, 0); b.closed() && b.failures == 0 {
			delete(h.tenants, tenant)
		}
	}
	if now.Before(h.all.until) || h.apart {
		return
	}
	h.run.note(tenant, failed)
	if h.all.ended(failed, h.run.several, now); now.Before(h.all.until) {
		h.run = failureRun{}
	}
}

// note adds an attempt to the run, or ends it.
func (r *failureRun) note(tenant uuid.UUID, failed bool) {
	switch {
	case !failed:
		*r = failureRun{}
	case !r.begun:
		*r = failureRun{first: tenant, begun: true}
	case tenant != r.first:
		r.several = true
	}
}

// hold pauses a tenant, because the provider asked for it. The channel pauses while two tenants do.
func (h *holds) hold(tenant uuid.UUID, until, now time.Time) {
	h.of(tenant).hold(until)
	if h.apart {
		return
	}
	var longest, second time.Time
	for _, b := range h.tenants {
		switch {
		case !b.asked || !b.until.After(second):
		case b.until.After(longest):
			longest, second = b.until, longest
		default:
			second = b.until
		}
	}
	if second.After(now) {
		h.all.hold(second)
	}
}

// room returns the number of a tenant's recipients that may be let through now, or else the wait.
func (h *holds) room(tenant uuid.UUID, now time.Time) (recipients int, wait time.Duration) {
	b := h.tenants[tenant]
	if b == nil {
		return math.MaxInt, 0
	}
	recipients, wait = b.breaker.room(now, math.MaxInt)
	if recipients == 0 || b.closed() || !now.Before(b.again) {
		return recipients, wait
	}
	if recipients = max(recipients-b.tried, 0); recipients == 0 {
		return 0, b.again.Sub(now)
	}
	return recipients, 0
}

// took counts a tenant's recipient that was let through.
func (h *holds) took(tenant uuid.UUID, now time.Time) {
	b := h.tenants[tenant]
	if b == nil || b.closed() {
		return
	}
	if !now.Before(b.again) {
		b.tried = 0
	}
	b.tried++
	b.again = now.Add(max(b.pause, b.first))
}

// held reports whether a tenant is paused, or tried carefully.
func (h *holds) held(tenant uuid.UUID) bool {
	b := h.tenants[tenant]
	return b != nil && !b.closed()
}

// some reports whether any tenant is held. It forgets idle tenants without waiting recipients.
func (h *holds) some(now time.Time, waiting func(uuid.UUID) int) (some bool) {
	for tenant, b := range h.tenants {
		switch {
		case b.closed():
		case now.Sub(b.until) > forgetHold && now.Sub(b.again) > forgetHold && waiting(tenant) == 0:
			delete(h.tenants, tenant)
		default:
			some = true
		}
	}
	return some
}

// views returns the state of the channel, and the states of the tenants that are held, in the order of their ids.
func (h *holds) views(channel string, now time.Time) (views []channelhealth.View) {
	for tenant, b := range h.tenants {
		if !b.closed() {
			views = append(views, channelhealth.View{Channel: channel, Tenant: tenant, State: b.state(now), Held: max(b.until.Sub(now), 0)})
		}
	}
	slices.SortFunc(views, func(a, b channelhealth.View) int { return cmp.Compare(a.Tenant.String(), b.Tenant.String()) })
	all := channelhealth.View{Channel: channel, State: h.all.state(now), Held: max(h.all.until.Sub(now), 0)}
	return append([]channelhealth.View{all}, views[:min(len(views), maxViewed)]...)
}
