package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// hostileAnswers are answers that a tenant can cause a provider to give for a device, an address or an endpoint of its
// own.
var hostileAnswers = map[string]channel.Result{
	"throttled":            {Outcome: push.Refused, RetryAfter: time.Hour, Error: "busy"},
	"throttled, one alone": {Outcome: push.Refused, RetryAfter: time.Hour, OneAddress: true, Error: "busy"},
	"down":                 {Outcome: push.Refused, Down: true, Error: "no connection"},
	"no answer":            {Outcome: push.Unknown, Error: "no answer"},
}

// TestWorkers_HostileTenant: a storm of one tenant's pushes, whose answers ask for pauses or open the breaker, does not
// hold a shared channel: a second tenant's pushes are sent meanwhile, through each worker.
func TestWorkers_HostileTenant(t *testing.T) {
	t.Parallel()
	for name, answer := range hostileAnswers {
		for kind, speed := range map[string]pace.Speed{"any speed": {}, "limited": pace.PerSpan(200, time.Second, 1)} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				f := setupWorkers(t, 2, speed)
				hostile, victim := f.tenant, uuid.New()
				f.sms.answer = func(_ context.Context, p push.Push, _ int) channel.Result {
					if p.Tenant == hostile {
						return answer
					}
					return channel.Result{Outcome: push.Delivered}
				}
				storm := func(prefix string) {
					f.tenant = hostile
					f.due(t, "sms", names(prefix, 60)...)
				}
				storm("first")
				eventually(t, "the hostile tenant is held, unless each push waits alone", func() bool { return answer.OneAddress || f.holds(0) || f.holds(1) })
				delivered := func() (n int) {
					for _, took := range f.sms.all() {
						if took.push.Tenant == victim {
							n++
						}
					}
					return n
				}
				for round := range 5 {
					storm("r" + string(rune('0'+round)))
					f.tenant = victim
					f.due(t, "sms", names("v"+string(rune('0'+round)), 10)...)
					eventually(t, "the victim's are sent", func() bool { return delivered() == 10*(round+1) })
					for worker := range f.workers {
						if all, _ := f.held(worker); all {
							t.Errorf("worker %d holds the channel for all tenants", worker)
						}
					}
				}
			})
		}
	}
}

// TestWorkers_TwoTenantsHoldChannel: if pushes of two tenants are asked for a pause, at two workers, the channel pauses
// at both.
func TestWorkers_TwoTenantsHoldChannel(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 2, pace.Speed{})
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		return channel.Result{Outcome: push.Refused, RetryAfter: time.Hour, Error: "busy"}
	}
	f.due(t, "sms", "one")
	eventually(t, "both workers hold the first tenant", func() bool { return f.holds(0) && f.holds(1) })
	if all, _ := f.held(0); all {
		t.Error("one tenant holds the channel")
	}
	f.tenant = uuid.New()
	f.due(t, "sms", "two")
	eventually(t, "both workers hold the channel", func() bool {
		first, _ := f.held(0)
		second, _ := f.held(1)
		return first && second
	})
	f.tenant = uuid.New()
	f.due(t, "sms", "three")
	eventually(t, "a third tenant's waits without an attempt", func() bool { return f.waiting() > 0 })
	if n := len(f.sms.all()); n != 2 {
		t.Errorf("%d attempts", n)
	}
}
