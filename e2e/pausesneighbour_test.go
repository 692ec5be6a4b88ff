package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// pausesNeighbourConfig lets a tenant change its pauses as fast as it can.
const pausesNeighbourConfig = `
policy: {rules: []}
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true}
api_limits: {per_key: [{algorithm: sliding_window, limit: 600000, per: 1m}]}
`

// dueAtOnce gives a tenant pushes of the category news, which are all due at a time.
func (b *bundle) dueAtOnce(tenant string, pushes int, at time.Time) {
	b.t.Helper()
	testenv.Forge(b.t, b.Database)
	b.sql(fmt.Sprintf(`
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms)
		SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint,
			r.name, 'push', 'news', '{}', at.at, at.at, at.at, at.at + interval '1 day', 86400000
		FROM tenants t, generate_series(1, %d) AS n, LATERAL (SELECT 'news-' || n AS name) r, (SELECT timestamptz '%s' AS at) at
		WHERE t.name = '%s'`, pushes, at.UTC().Format(time.RFC3339), tenant))
	b.sql("ANALYZE pushes, live")
}

// lateness submits twenty pushes a second for some seconds, and returns the 99th percentile of their lateness.
func (b *bundle) lateness(prefix string, seconds int) time.Duration {
	b.t.Helper()
	const aSecond = 20
	from := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	var pushes []object
	for i := range aSecond * seconds {
		at := from.Add(time.Duration(i/aSecond) * time.Second)
		pushes = append(pushes, object{"recipient": fmt.Sprint(prefix, i), "channel": "push", "category": "code", "send_at": at.Format(time.RFC3339), "message": object{}})
	}
	if status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes}); status != http.StatusOK || a["accepted"] != float64(len(pushes)) {
		b.t.Fatalf("%d %v", status, a)
	}
	b.until(prefix+" are sent", func() bool {
		return testenv.Query[int](b.t, b.Database, `SELECT count(*) FROM sends WHERE recipient LIKE $1 || '%'`, prefix) >= len(pushes)
	})
	late := testenv.Query[float64](b.t, b.Database, `SELECT extract(epoch FROM percentile_disc(0.99) WITHIN GROUP (ORDER BY started_at - send_at))::float8 FROM sends WHERE recipient LIKE $1 || '%'`, prefix)
	return time.Duration(late * float64(time.Second))
}

// TestNeighbours_Pauses: a tenant with a hundred thousand paused pushes that are due changes its pauses as fast as it can. Another tenant's
// pushes are at most three times as late as without it.
func TestNeighbours_Pauses(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: pausesNeighbourConfig})
	b.StartAPI()
	b.Start("worker")
	b.Start("worker")
	calm := b.tenant("calm")
	calmly := max(calm.lateness("calm-", 4), 80*time.Millisecond)

	if status, a := b.call(http.MethodPost, "/v1/pauses", object{"scope": "category", "name": "news"}); status != http.StatusCreated {
		t.Fatalf("%d %v", status, a)
	}
	const paused = 100_000
	b.dueAtOnce("acme", paused, time.Now())
	parked := func() int {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM live WHERE pause_id IS NOT NULL`)
	}
	b.until("all are parked", func() bool { return parked() == paused })

	var changes atomic.Int64
	over := make(chan struct{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
				}
				a, err := b.ask(http.MethodPost, "/v1/pauses", object{"scope": "category", "name": fmt.Sprint("c", i)})
				if err == nil && a.status == http.StatusCreated {
					_, _ = b.ask(http.MethodDelete, "/v1/pauses/"+a.body["id"].(string), nil)
					changes.Add(2)
				}
			}
		})
	}
	storm := calm.lateness("storm-", 4)
	close(over)
	all.Wait()
	t.Logf("p99 of the other tenant: %s calm, %s beside %d changes of pauses", calmly, storm, changes.Load())
	if storm > 3*calmly {
		t.Errorf("another tenant's p99 is %s, and %s without the pauses", storm, calmly)
	}
	if changes.Load() < 100 || parked() != paused {
		t.Errorf("%d changes, %d parked", changes.Load(), parked())
	}
}
