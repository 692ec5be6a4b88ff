package delivery

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// holding is a queue without a limit of its speed, and two tenants.
func holding() (q *channelQueue, hostile, other uuid.UUID) {
	q = newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: 30 * time.Second}}, newSlots(1000, 1))
	return q, uuid.New(), uuid.New()
}

// TestHolds_OneTenant: whatever happens to one tenant's pushes, the pushes of another are taken at once, and the
// hostile tenant's pushes leave room for them in the queue.
func TestHolds_OneTenant(t *testing.T) {
	for name, storm := range map[string]func(q *channelQueue, tenant uuid.UUID){
		"throttled": func(q *channelQueue, tenant uuid.UUID) { q.hold(tenant, time.Hour) },
		"failing":   func(q *channelQueue, tenant uuid.UUID) { q.report(tenant, true) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q, hostile, other := holding()
				for i := range shortestQueue {
					q.add(booking.Due{RecipientKey: int64(i), Tenant: hostile})
				}
				for range 2 * failuresToOpen {
					storm(q, hostile)
				}
				if n := q.len(); n != heldQueue {
					t.Errorf("%d of the hostile tenant stay in the queue", n)
				}
				if n, _ := q.room(); n != 0 {
					t.Errorf("%d permits for a tenant that is held", n)
				}
				for i := range 100 {
					storm(q, hostile)
					q.add(booking.Due{RecipientKey: -1 - int64(i), Tenant: other})
					if n, _ := q.room(); n != 1 {
						t.Fatalf("room for %d of the other tenant", n)
					}
					if d, ok := q.next(); !ok || d.Tenant != other {
						t.Fatalf("%v: %+v is taken, not the other tenant's", ok, d)
					}
					q.report(other, false)
				}
				if all, tenants := q.held(); all != 0 || tenants != 1 {
					t.Errorf("the channel pauses for %s, %d tenants are held", all, tenants)
				}
			})
		})
	}
}

// TestHolds_TwoTenants: the channel pauses when pushes of a second tenant have the same trouble, while both pause.
func TestHolds_TwoTenants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, hostile, other := holding()
		q.hold(hostile, time.Hour)
		if all := q.hold(other, time.Minute); all != time.Minute {
			t.Errorf("two tenants were asked for a pause, and the channel pauses for %s", all)
		}
		q.add(booking.Due{RecipientKey: 1, Tenant: uuid.New()})
		if d, ok := q.next(); ok {
			t.Errorf("%+v is taken", d)
		}
		time.Sleep(time.Minute)
		if _, ok := q.next(); !ok {
			t.Error("none is taken when one of the tenants may send again")
		}

		q, hostile, other = holding()
		for i := range failuresToOpen {
			if all, _ := q.held(); all != 0 {
				t.Fatalf("the channel pauses after %d failures", i)
			}
			q.report([]uuid.UUID{hostile, other}[i%2], true)
		}
		if all, _ := q.held(); all != time.Second {
			t.Errorf("two tenants' attempts fail, and the channel pauses for %s", all)
		}
		time.Sleep(time.Second)
		q.report(hostile, true)
		if all, _ := q.held(); all != 0 {
			t.Errorf("it pauses again for %s because of one tenant", all)
		}
		q.report(other, true)
		if all, _ := q.held(); all != 2*time.Second {
			t.Errorf("it pauses again for %s because of both", all)
		}
	})
}

// TestHolds_Trial: a tenant whose pause is over is tried with one push, two and so on; and with one after a while if
// nothing was sent for it.
func TestHolds_Trial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, tenant, _ := holding()
		q.hold(tenant, time.Minute)
		for i := range 100 {
			q.add(booking.Due{RecipientKey: int64(i), Tenant: tenant})
		}
		wants := func(when string, n int) {
			t.Helper()
			for i := range n {
				if _, ok := q.next(); !ok {
					t.Fatalf("%s: %d are taken, want %d", when, i, n)
				}
			}
			if _, ok := q.next(); ok {
				t.Fatalf("%s: more than %d are taken", when, n)
			}
		}
		wants("in the pause", 0)
		time.Sleep(time.Minute)
		wants("after it", 1)
		if _, wait := q.room(); wait != time.Second {
			t.Errorf("the next is tried in %s", wait)
		}
		time.Sleep(time.Second)
		wants("without a report", 1)
		q.report(tenant, false)
		wants("after a success", 2)
		q.report(tenant, false)
		wants("after another", 3) // four at a time, and one is under way
		q.report(tenant, true)
		wants("after a failure", 0)
	})
}

// TestHolds_Forgotten: a tenant that sends nothing does not keep others' pushes in the queue for long.
func TestHolds_Forgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, tenant, _ := holding()
		q.hold(tenant, time.Minute)
		time.Sleep(time.Minute + forgetHold)
		if _, waits := q.open(); !waits {
			t.Error("it is forgotten early")
		}
		time.Sleep(time.Second)
		if _, waits := q.open(); waits {
			t.Error("it is not forgotten")
		}
	})
}

// TestHolds_Views shows the channel, and the tenants that are held; very many of them in part.
func TestHolds_Views(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, hostile, other := holding()
		q.hold(hostile, time.Hour)
		q.report(other, true)
		want := []channelhealth.View{{Channel: "sms", State: channelhealth.Working}, {Channel: "sms", Tenant: hostile, State: channelhealth.Paused, Held: time.Hour}}
		if got := q.views(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
		for range 2 * maxViewed {
			q.hold(uuid.New(), time.Minute)
		}
		if n := len(q.views()); n != 1+maxViewed {
			t.Errorf("%d views", n)
		}
	})
}
