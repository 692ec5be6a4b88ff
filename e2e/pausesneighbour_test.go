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

// pausesNeighbourConfig lets a tenant change its pauses and its channels as fast as it can.
const pausesNeighbourConfig = `
policy: {rules: []}
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true}
api_limits: {per_key: [{algorithm: sliding_window, limit: 600000, per: 1m}]}
tenant_channels: {allow_private_addresses: true}
`

// dueAtOnce gives a tenant pushes of a category, which are all due at a time, marked as so many for a second are. The names of their
// recipients begin with the category and the second.
func (b *bundle) dueAtOnce(tenant, category string, pushes int, at time.Time) {
	b.t.Helper()
	testenv.Forge(b.t, b.Database)
	due := at.UTC().Format(time.RFC3339)
	b.sql(fmt.Sprintf(`
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms)
		SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint,
			r.name, 'push', '%[2]s', '{}', at.at, at.at, at.at, at.at + interval '1 day', 86400000
		FROM tenants t, generate_series(1, %[1]d) AS n, LATERAL (SELECT '%[2]s-%[3]s-' || n AS name) r, (SELECT timestamptz '%[3]s' AS at) at
		WHERE t.name = '%[4]s';
		UPDATE live SET rank = 3, phase = 3 WHERE send_at = '%[3]s' AND tenant_id = (SELECT id FROM tenants WHERE name = '%[4]s')`, pushes, category, due, tenant))
	b.sql("ANALYZE pushes, live")
}

// lateness submits twenty pushes a second through a channel for some seconds, and returns the 99th percentile of their lateness.
func (b *bundle) lateness(channel, prefix string, seconds int) time.Duration {
	b.t.Helper()
	const aSecond = 20
	from := time.Now().Add(2 * time.Second).UTC().Truncate(time.Second)
	var pushes []object
	for i := range aSecond * seconds {
		at := from.Add(time.Duration(i/aSecond) * time.Second)
		pushes = append(pushes, object{"recipient": fmt.Sprint(prefix, i), "channel": channel, "category": "code", "send_at": at.Format(time.RFC3339), "message": object{}})
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

// calmest is a lateness of which three times as much is still on time: the pauses of a busy machine are that long.
const calmest = 80 * time.Millisecond

// repeat calls functions again and again, each in its own goroutine, until stop is called.
func repeat(calls ...func()) (stop func()) {
	var all sync.WaitGroup
	over := make(chan struct{})
	for _, call := range calls {
		all.Go(func() {
			for {
				select {
				case <-over:
					return
				default:
					call()
				}
			}
		})
	}
	return func() {
		close(over)
		all.Wait()
	}
}

// pausing makes pauses of a scope and ends them, and counts both.
func (b *bundle) pausing(scope, name string, changes *atomic.Int64) {
	a, err := b.ask(http.MethodPost, "/v1/pauses", object{"scope": scope, "name": name})
	if err == nil && a.status == http.StatusCreated {
		_, _ = b.ask(http.MethodDelete, "/v1/pauses/"+a.body["id"].(string), nil)
		changes.Add(2)
	}
}

// TestNeighbours_Pauses: a tenant with a hundred thousand paused pushes that are due changes its pauses as fast as it can, and then
// a hundred thousand more become due in one second. Another tenant's pushes are at most three times as late as without it; in that second
// and the next ones, they are not later than beside as many pushes that are sent.
func TestNeighbours_Pauses(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: pausesNeighbourConfig})
	b.StartAPI()
	b.Start("worker")
	b.Start("worker")
	calm := b.tenant("calm")
	calmly := max(calm.lateness("push", "calm-", 4), calmest)

	if status, a := b.call(http.MethodPost, "/v1/pauses", object{"scope": "category", "name": "news"}); status != http.StatusCreated {
		t.Fatalf("%d %v", status, a)
	}
	const paused = 100_000
	b.dueAtOnce("acme", "news", paused, time.Now())
	parked := func() int {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM live WHERE pause_id IS NOT NULL`)
	}
	b.until("all are parked", func() bool { return parked() == paused })

	var changes atomic.Int64
	var calls []func()
	for i := range 4 {
		calls = append(calls, func() { b.pausing("category", fmt.Sprint("c", i), &changes) })
	}
	stop := repeat(calls...)
	storm := time.Duration(0)
	for n := 0; n == 0 || changes.Load() < 100; n++ { // a busy machine takes longer for a storm
		storm = max(storm, calm.lateness("push", fmt.Sprint("storm-", n, "-"), 4))
	}
	stop()
	t.Logf("p99 of the other tenant: %s calm, %s beside %d changes of pauses", calmly, storm, changes.Load())
	if storm > 3*calmly {
		t.Errorf("another tenant's p99 is %s, and %s without the pauses", storm, calmly)
	}
	if parked() != paused {
		t.Errorf("%d parked", parked())
	}

	wave := func(category string) time.Duration {
		at := time.Now().Add(20 * time.Second)
		b.dueAtOnce("acme", category, paused, at)
		time.Sleep(time.Until(at.Add(-3 * time.Second)))
		return calm.lateness("push", "beside-"+category+"-", 6)
	}
	held := wave("news")
	b.until("all are parked", func() bool { return parked() == 2*paused })
	sent := wave("offers")
	t.Logf("p99 of the other tenant: %s while %d paused pushes become due, %s while %d others become due and are sent", held, paused, sent, paused)
	if held > max(3*calmly, sent) {
		t.Errorf("another tenant's p99 is %s while paused pushes become due, %s while others are sent, and %s without both", held, sent, calmly)
	}
}
