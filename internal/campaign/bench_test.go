package campaign_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// BenchmarkSimulate simulates a campaign for 100,000 recipients with 300,000 bookings of another campaign around its
// time, so that a third of them is deferred. Each recipient has a message of its own.
func BenchmarkSimulate(b *testing.B) {
	const recipients = 100_000
	s := setup(b, quota.Rule{Name: "per-hour", Limit: 2, Window: time.Hour}, quota.Rule{Name: "per-day", Limit: 4, Window: 24 * time.Hour})
	tenant, at := s.newTenant(b), time.Now().Add(48*time.Hour).Truncate(time.Second)
	other := s.drafted(b, broadcast.Campaign{Tenant: tenant, Name: "other"})
	s.exec(b, `UPDATE campaigns SET status = 'running', started_at = clock_timestamp() WHERE id = $1`, [16]byte(other.ID))
	c := func() broadcast.Campaign { // a function, so that the audience can be collected after it
		var (
			audience []broadcast.AudienceLine
			held     []push.Push
		)
		for i := range recipients {
			who := fmt.Sprint("user-", i)
			audience = append(audience, broadcast.AudienceLine{Recipient: who})
			for n := range 3 {
				apart := time.Duration(1+i%3) * 25 * time.Minute
				held = append(held, push.Push{Content: push.Content{Recipient: who, Channel: "sms"}, Tenant: tenant, Campaign: other.ID, SendAt: at.Add(apart * time.Duration(n))})
			}
		}
		s.holds(b, held...)
		return s.drafted(b, broadcast.Campaign{Tenant: tenant, SendAt: at, Spread: 30 * time.Minute, OnConflict: "defer"}, audience...)
	}()
	s.exec(b, `UPDATE campaign_recipients SET variables = json_build_object('first_name', recipient, 'city', 'Berlin')`)
	s.exec(b, `UPDATE campaigns SET message = $1`, []byte(`{"title":"Hi {{ first_name | default: 'there' }}","body":"{% if city == 'Berlin' %}Near you{% else %}Far away{% endif %}: everything must go, {{ first_name }}."}`))
	s.exec(b, `VACUUM ANALYZE`)
	s.parse = nil
	runtime.GC()
	var most atomic.Uint64
	watch := time.NewTicker(20 * time.Millisecond)
	defer watch.Stop()
	go func() {
		for range watch.C {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			most.Store(max(most.Load(), m.HeapAlloc))
		}
	}()
	for b.Loop() {
		sum, err := s.Simulate(b.Context(), tenant, c.ID, push.OwnCaps{}, nil)
		if err != nil || sum.Recipients != recipients || sum.Deferred < recipients/4 || sum.CollidesWith[0].Recipients < recipients/4 {
			b.Fatalf("%+v, %v", sum, err)
		}
	}
	b.ReportMetric(float64(most.Load())/(1<<20), "MiB-heap")
}
