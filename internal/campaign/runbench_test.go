package campaign_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkRunner books a campaign for 100,000 recipients with 300,000 bookings around its time, so that a third of
// them is deferred. Meanwhile another tenant submits single pushes, as it does before. Then the campaign is canceled.
func BenchmarkRunner(b *testing.B) {
	const recipients = 100_000
	s := setupRunning(b, quota.Rule{Name: "per-hour", Limit: 2, Window: time.Hour}, quota.Rule{Name: "per-day", Limit: 4, Window: 24 * time.Hour})
	at := time.Now().UTC().Add(48 * time.Hour).Truncate(time.Second)
	other := s.draft(0, campaign.Change{})
	for n := range 3 {
		s.exec(`
			INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, address, message, requested_send_at, send_at, next_at, expires_at, ttl_ms, status, plan,
				request_id, created_at, updated_at, shard, campaign_id)
			SELECT gen_random_uuid(), $1, key, r, 'log', '', '', '{}', at, at, at, at + interval '1 day', 86400000, 'scheduled', 1, '', now(), now(), key & 255, $4
			FROM (SELECT r, ('x' || encode(substr(sha256(uuid_send($1) || convert_to(r, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS key,
				$2::timestamptz + $3::int * (1 + i % 3) * interval '25 minutes' AS at FROM generate_series(0, $5 - 1) i, LATERAL (SELECT 'user-' || i AS r) l) n`,
			s.tenant, at, n, other.ID, recipients)
	}
	c := s.draft(recipients, campaign.Change{SendAt: &at, Spread: new(30 * time.Minute), OnConflict: new("defer")})
	s.exec(`ANALYZE`)
	w := s.worker(s.store)
	calm := s.submits(b, func() { time.Sleep(5 * time.Second) })
	for b.Loop() {
		s.act(c, broadcast.Start)
		began, before := time.Now(), s.processor()
		busy := s.submits(b, func() { s.passes(w, c, broadcast.Running) })
		c = s.read(c)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-book")
		b.ReportMetric((s.processor() - before).Seconds(), "cpu-s-to-book")
		b.ReportMetric(float64(calm.Microseconds())/1000, "ms-p99-calm")
		b.ReportMetric(float64(busy.Microseconds())/1000, "ms-p99-busy")
		b.Logf("%+v", c.Progress)
		s.act(c, broadcast.Cancel)
		began = time.Now()
		s.passes(w, c, broadcast.Canceled)
		b.ReportMetric(time.Since(began).Seconds(), "s-to-cancel")
	}
}

// processor returns the processor time of this process and of the Postgres connections to the database, where the
// system reports it.
func (b *running) processor() (total time.Duration) {
	pids := testenv.Query[[]int32](b.t, b.url, `SELECT array_agg(pid) FROM pg_stat_activity WHERE datname = current_database()`)
	for _, pid := range append(pids, int32(os.Getpid())) {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); err == nil && len(fields) > 13 {
			for _, ticks := range fields[11:13] {
				n, _ := strconv.Atoi(ticks)
				total += time.Duration(n) * 10 * time.Millisecond
			}
		}
	}
	return total
}

// passes makes passes of a worker until a campaign has a state.
func (b *running) passes(w loop.Loop, c broadcast.Campaign, status broadcast.Status) {
	for n := 0; n%10 > 0 || b.read(c).Status != status; n++ {
		full, err := w.Pass(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		if !full {
			time.Sleep(50 * time.Millisecond)
		}
	}
}

// submits submits fifty pushes a second of another tenant while a function runs, and returns the 99th percentile of the
// latency.
func (b *running) submits(t testing.TB, while func()) time.Duration {
	st := b.open(4)
	service := b.service(st)
	tenant, _, err := st.CreateTenant(t.Context(), uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	var (
		mu   sync.Mutex
		all  []time.Duration
		done = make(chan struct{})
		each sync.WaitGroup
	)
	each.Go(func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			each.Go(func() {
				began := time.Now()
				_, err := service.Submit(t.Context(), tenant, schedule.Request{Content: push.Content{Recipient: fmt.Sprint("single-", n), Channel: "log", Message: []byte(`{}`)}, SendAt: time.Now().Add(time.Hour)}, schedule.Options{})
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				all = append(all, time.Since(began))
				mu.Unlock()
			})
		}
	})
	while()
	close(done)
	each.Wait()
	slices.Sort(all)
	return all[len(all)*99/100]
}
