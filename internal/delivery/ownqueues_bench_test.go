package delivery_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkOwnQueues sends a push through a channel of its own for each of 10,000 tenants, all due at the same time, with one
// worker. It reports the memory of a queue, and how late the pushes left.
func BenchmarkOwnQueues(b *testing.B) {
	const tenants = 10_000
	for b.Loop() {
		f := setupOwn(b, 1, func(cfg *delivery.Config) { cfg.Concurrency = 64 })
		testenv.Exec(b, f.url, `
			WITH made AS (INSERT INTO tenants (id, name, channels_version) SELECT gen_random_uuid(), 'many ' || n, 1 FROM generate_series(1, $1) n RETURNING id), version AS (UPDATE channel_changes SET version = 1)
			INSERT INTO tenant_channels (id, tenant_id, name, type, settings, secret, secret_times, version) SELECT gen_random_uuid(), id, 'mine', 'log', '{}', '', '{}', 1 FROM made`, tenants)
		own := testenv.Query[[]uuid.UUID](b, f.url, `SELECT array_agg(tenant_id) FROM tenant_channels`)
		at := thisSecond().Add(30 * time.Second)
		var booking errgroup.Group
		booking.SetLimit(8)
		for _, tenant := range own {
			f.channels.set(tenant, "mine", f.sms, pace.Speed{})
			booking.Go(func() error {
				of := *f.bundle
				of.tenant = tenant
				of.bookAll(b, "mine", at, "anna")
				return nil
			})
		}
		testenv.Check(b, booking.Wait())
		heap := func() float64 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			return float64(m.HeapInuse + m.StackInuse)
		}
		before := heap()
		if left := time.Until(at); left < 0 {
			b.Fatalf("the pushes were booked %s late", -left)
		}
		time.Sleep(time.Until(at.Add(-time.Second)))
		for _, l := range push.Lanes(4) {
			testenv.Check(b, f.workers[0].Handle(b.Context(), push.WakeUp{Lane: l, At: at}))
		}
		for len(f.sms.all()) < tenants && b.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		var late []time.Duration
		for _, took := range f.sms.all() {
			late = append(late, took.at.Sub(at))
		}
		slices.Sort(late)
		b.ReportMetric(late[len(late)-1].Seconds(), "s-to-the-last")
		b.ReportMetric((heap()-before)/float64(f.workers[0].OwnQueues()), "B/queue")
		var in time.Duration
		for f.workers[0].OwnQueues() > 0 && in < time.Hour {
			in += 2 * time.Minute
			f.workers[0].ForgetIdle(in)
			time.Sleep(10 * time.Millisecond)
		}
		b.ReportMetric((heap()-before)/float64(tenants), "B/tenant-afterwards")
	}
}
