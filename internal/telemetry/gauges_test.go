package telemetry

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestGauges_AskServersRarely: a hundred requests for the metrics are one question to
// each server; what the process itself knows is always fresh.
func TestGauges_AskServersRarely(t *testing.T) {
	var (
		asked   atomic.Int64
		polling atomic.Bool
		now     = time.Now()
	)
	ask := func(context.Context) error { asked.Add(1); return nil }
	m := NewMetrics()
	c := &gaugeCollector{now: func() time.Time { return now }, Gauges: Gauges{
		Postgres: ask, Redis: ask, Polling: polling.Load,
		PutOff:   func(context.Context) (int, error) { return 0, nil },
		Backlog:  func(context.Context) (int, time.Duration, error) { return int(asked.Load()), 0, nil },
		Webhooks: func(context.Context) (int, time.Duration, int, error) { return 0, 0, 0, nil },
		Rates: func(_ context.Context, each func(string, int, int, int)) error {
			each("sms", 360, 90, 2)
			return nil
		},
		QueueSizes: func() (map[string]int, error) { return nil, nil },
		Partitions: func(each func(string, time.Time, time.Time)) {
			each("pushes", now.Add(-time.Hour), now.Add(time.Minute))
		},
	}}
	m.registry.MustRegister(c)
	page := func() string {
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { page() })
	}
	all.Wait()
	if n := asked.Load(); n != 2 {
		t.Errorf("the servers were asked %d times", n)
	}
	if text := page(); !strings.Contains(text, `sendquota_channel_rejected_ratio{channel="sms"} 0.25`) || !strings.Contains(text, `sendquota_channel_rejecting_tenants{channel="sms"} 2`) {
		t.Error(text)
	}
	polling.Store(true)
	if text := page(); !strings.Contains(text, `sendquota_partitions_oldest_seconds{table="pushes"} 3600`) || !strings.Contains(text, `sendquota_partitions_ahead_seconds{table="pushes"} 60`) {
		t.Error(text)
	}
	if text := page(); !strings.Contains(text, "sendquota_polling 1") || !strings.Contains(text, `sendquota_up{server="postgres"} 1`) {
		t.Error(text)
	}
	now = now.Add(gaugesKept)
	page()
	if n := asked.Load(); n != 4 {
		t.Errorf("after a while the servers were asked %d times", n)
	}
}
