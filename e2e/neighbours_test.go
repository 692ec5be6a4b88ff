package e2e

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// tenant makes a tenant with a key, and returns the bundle with that key.
func (b *bundle) tenant(name string) *bundle {
	b.t.Helper()
	other := *b
	other.Key = b.Tenant(name)
	return &other
}

// stock gives a tenant pushes for a number of recipients, with messages of the given size. They are due next year, one
// of a recipient every minute.
func (b *bundle) stock(tenant, recipient string, pushes, recipients, bytes int) {
	b.t.Helper()
	testenv.Forge(b.t, b.Database)
	b.sql(`SELECT make_partitions('pushes', now() + interval '100 days', now() + interval '200 days')`)
	b.sql(fmt.Sprintf(`
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, ttl_ms)
		SELECT gen_random_uuid(), t.id, ('x' || substr(encode(sha256(decode(replace(t.id::text, '-', ''), 'hex') || r.name::bytea), 'hex'), 1, 16))::bit(64)::bigint,
			r.name, 'log', 'newsletter', json_build_object('body', repeat('x', %[1]d)), at.at, at.at, at.at, at.at + interval '1 day', 86400000
		FROM tenants t, generate_series(0, %[2]d - 1) AS n,
			LATERAL (SELECT CASE WHEN %[3]d = 1 THEN '%[4]s' ELSE '%[4]s-' || n %% %[3]d END AS name) r,
			LATERAL (SELECT date_trunc('minute', clock_timestamp()) + interval '100 days' + n / %[3]d * interval '1 minute' AS at) at
		WHERE t.name = '%[5]s'`, bytes, pushes, recipients, recipient, tenant))
	b.sql("ANALYZE pushes, live")
}

// peak returns the peak memory of a program in MiB, as Linux reports it.
func peak(t *testing.T, p *process.Process) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Pid()))
	if err != nil {
		t.Skip("this system does not report peak memory")
	}
	for line := range bytes.Lines(status) {
		if fields := bytes.Fields(line); len(fields) > 1 && string(fields[0]) == "VmHWM:" {
			n, _ := strconv.Atoi(string(fields[1]))
			return n >> 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// crowdedConfig lets one recipient have as many bookings as can be.
const crowdedConfig = `
policy:
  rules: [{name: per-minute, limit: 1, window: 1m}, {name: per-day, limit: 1000, window: 24h}]
channels:
  log: {type: log}
http: {drain: 0s}
`

// mostMemory is the maximum memory of an API under any load, in MiB.
const mostMemory = 400

// TestNeighbours_Memory: callers who take their answers slowly, or send their requests
// slowly, of several tenants and of none, do not make the API take more memory than
// it may, and are no reason not to serve another tenant.
func TestNeighbours_Memory(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: crowdedConfig})
	api := b.StartAPI()
	loud := []*bundle{b, b.tenant("loud-1"), b.tenant("loud-2")}
	for _, name := range []string{"acme", "loud-1", "loud-2"} {
		b.stock(name, "page", 520, 520, 60_000)
		b.stock(name, "hot", 120_000, 1, 2)
	}
	calm := b.tenant("calm").calmly()
	crowd := &crowd{b: b}
	t.Cleanup(crowd.leave)
	over := func(phase string) {
		t.Helper()
		calm.goOn()
		peak := peak(t, api)
		t.Logf("%s: the API had %d MiB at most", phase, peak)
		if peak >= mostMemory {
			t.Errorf("%s: the API had %d MiB, want less than %d", phase, peak, mostMemory)
		}
		crowd.leave()
	}
	over("a calm tenant")

	var members []object
	for n := range 65 {
		members = append(members, object{"recipient": fmt.Sprint("big-", n), "message": object{"body": strings.Repeat("x", 60_000)}, "send_at": time.Now().Add(time.Hour)})
	}
	var batches sync.WaitGroup
	for range 8 {
		batches.Go(func() {
			if a, err := b.ask("POST", "/v1/pushes/batch", object{"pushes": members}); err != nil || a.status != http.StatusOK {
				t.Errorf("batch: %d %v", a.status, err)
			}
		})
	}
	batches.Wait()
	over("8 batches of 65 pushes of 60 KB")

	if got := crowd.ask(20, b.text("GET", "/v1/pushes?page_size=500", b.Key, ""), 20); got[200] != 20 {
		t.Errorf("20 slow readers of the list: %v", got)
	}
	over("20 slow readers of the list")

	half := func(path, key string, bytes int) []byte {
		whole := b.text("POST", path, key, `{"pushes":"`+strings.Repeat("x", bytes)+`"}`)
		return whole[:len(whole)-bytes/2]
	}
	if got := crowd.ask(100, half("/v1/pushes/batch", b.Key, 4_190_000), 90); got[429] < 90 {
		t.Errorf("100 half-sent batches: %v", got)
	}
	over("100 half-sent batches")

	for _, one := range loud {
		crowd.ask(60, half("/v1/pushes/batch", one.Key, 4_190_000), 0)
		for _, path := range []string{"/v1/pushes", "/v1/limits/take", "/v1/quota/check", "/v1/webhooks"} {
			crowd.ask(60, half(path, one.Key, 60_000), 0)
		}
	}
	for _, key := range []string{"", "sq_wrong"} {
		crowd.ask(100, half("/v1/pushes/batch", key, 4_190_000), 100)
	}
	over("1100 slow senders, of three tenants and of none")

	ahead := func(days int) string { return time.Now().UTC().AddDate(0, 0, days).Format(time.RFC3339) }
	faults := `"a":1,` + strings.Repeat(`"b":2,`, 10_000) + `"c":3}`
	for _, worst := range []struct {
		name, method, path, body string
		times                    int // on one connection: the kernel takes the first few answers
	}{
		{"pages of the list", "GET", "/v1/pushes?page_size=500", "", 20},
		{"pictures of slots", "GET", "/v1/recipients/hot/slots?from=" + ahead(0) + "&until=" + ahead(399), "", 20},
		{"refusals with many faults", "POST", "/v1/pushes", "{" + faults, 20},
		{"batches with many faults", "POST", "/v1/pushes/batch", `{"pushes":[` + strings.Repeat(`{"a":1,"b":2},`, 999) + `{` + faults + `]}`, 20},
		{"checks of a crowded quota", "POST", "/v1/quota/check", `{"recipient":"hot","send_at":"` + ahead(130) + `"}`, 1},
		{"views of a crowded quota", "GET", "/v1/recipients/hot/quota?at=" + ahead(130), "", 1},
		{"refusals for a crowded recipient", "POST", "/v1/pushes", `{"recipient":"hot","message":{},"send_at":"` + ahead(130) + `"}`, 1},
		{"availabilities", "GET", "/v1/recipients/hot/availability?from=" + ahead(0) + "&until=" + ahead(399), "", 20},
	} {
		var all sync.WaitGroup
		var served atomic.Int64 // of all tenants: on a busy machine one of them may only see time-outs
		for _, one := range loud {
			request := bytes.Repeat(one.text(worst.method, worst.path, one.Key, worst.body), worst.times)
			all.Go(func() {
				got := crowd.ask(50, request, 50)
				t.Logf("%s: %v", worst.name, got)
				if got[-1] > 0 {
					t.Errorf("%s: %v", worst.name, got)
				}
				served.Add(int64(got[200] + got[409] + got[422]))
			})
		}
		all.Wait()
		if served.Load() == 0 {
			t.Errorf("%s: no request was served", worst.name)
		}
		over("150 that never read " + worst.name)
	}
	for _, path := range []string{"/openapi.json", "/docs", "/metrics"} {
		crowd.ask(200, bytes.Repeat(b.text("GET", path, "", ""), 20), 200)
	}
	over("600 that never read the open pages")

	calm.stop()
	for len(calm.wrong) > 0 {
		t.Errorf("the calm tenant: %s", <-calm.wrong)
	}
	t.Logf("the calm tenant was served %d times", calm.served.Load())
}

// TestNeighbours_Deliveries: while one tenant submits all that it can, asks for
// what costs most and takes at its worst, all requests of another are served, and its
// pushes leave before those that the loud tenant had due at the same time.
func TestNeighbours_Deliveries(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: neighbourConfig})
	b.StartAPI()
	calm := b.tenant("calm")
	due := time.Now().Add(4 * time.Second).Truncate(time.Second)
	const many, few = 600, 20
	b.submitAll("push", many, due)
	crowd := &crowd{b: b}
	t.Cleanup(crowd.leave)
	var limits []string
	for n := range 16 {
		limits = append(limits, fmt.Sprintf(`{"key":"%d","algorithm":"sliding_window","limit":1000,"per":"1s","precision":"1ms"}`, n))
	}
	for _, request := range [][]byte{
		b.text("GET", "/v1/pushes?category=zzz", b.Key, ""),
		b.text("POST", "/v1/limits/take", b.Key, `{"limits":[`+strings.Join(limits, ",")+`]}`),
		b.text("GET", "/v1/pushes", "sq_wrong", ""),
		b.text("GET", "/v1/no/such/path", b.Key, ""),
	} {
		crowd.ask(16, bytes.Repeat(request, 200), 16)
	}
	for n := range few {
		push := object{"recipient": fmt.Sprint("calm-", n), "channel": "push", "message": object{}, "send_at": due.Format(time.RFC3339)}
		if a, err := calm.ask("POST", "/v1/pushes", push); err != nil || a.status != http.StatusCreated {
			t.Errorf("submit: %v %v", a, err)
		}
		take := object{"key": "calm", "limits": []object{{"algorithm": "token_bucket", "limit": 1000, "per": "1s"}}}
		if a, err := calm.ask("POST", "/v1/limits/take", take); err != nil || a.status != http.StatusOK {
			t.Errorf("take: %v %v", a, err)
		}
	}
	b.Start("worker")
	sent := func() int {
		a, err := calm.ask("GET", "/v1/pushes?status=sent&page_size=100", nil)
		if err != nil || a.status != http.StatusOK {
			t.Errorf("list: %v %v", a, err)
			return few
		}
		return len(list(a.body))
	}
	b.until("the calm tenant's pushes are sent", func() bool { return sent() >= few })
	if before := len(b.through("push")); before >= many {
		t.Errorf("they left behind %d of the loud tenant, which were due at the same time", before)
	}
}

// neighbourConfig has a channel that takes a while for what is due.
const neighbourConfig = `
policy:
  rules: []
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, throughput: {rate: 100, per: 1s}}
http: {drain: 0s}
`
