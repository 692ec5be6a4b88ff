package console

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestNow tells in words and numbers how things stand, at first of nothing.
func TestNow(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.get("/console/now").has(t, 200, "no worker has reported", "Nothing is waiting", "No attempts in the last hour", "curl -sS 'https://api.example.com/v1/status'",
		"curl -sS 'https://api.example.com/v1/channels'", `hx-sse:connect="/console/now/live"`)

	one := b.submit("user-1", time.Hour)
	testenv.Exec(t, b.url, `UPDATE live SET next_at = now() - interval '90 seconds', send_at = now() - interval '90 seconds'`)
	testenv.Exec(t, b.url, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
		SELECT gen_random_uuid(), 1, $2, i, i & 255, 'anna', 'push', now() - interval '1.25 s' * i, now() - interval '1 s', now(), now(), CASE WHEN i <= 2 THEN 'delivered' ELSE 'refused' END
		FROM generate_series(1, 5) i, (SELECT $1::uuid) one`, one.ID, b.tenant)
	views := []push.ChannelView{{Channel: "push", State: push.ChannelFailing, Held: time.Minute}, {Channel: "sms", State: push.ChannelWorking}}
	if err := b.store.SeeChannels(t.Context(), uuid.New(), views); err != nil {
		t.Fatal(err)
	}
	var page reply
	testenv.Until(t, 50*time.Millisecond, "the status and the channels are counted again", func() bool {
		page = b.get("/console/now?tz=utc")
		return strings.Contains(page.Body, "message queued. It was due at") && strings.Contains(page.Body, "the provider is not responding") && strings.Contains(page.Body, "99 % were sent within")
	})
	page.has(t, 200, "1 min ago", "push is not sending", "1.2 s", "2.5 s", "99 % were sent within", "the provider is not responding", "in 1 min", "0 delivered", "2 delivered, 3 refused, 0 unconfirmed", "up to 90 in 1 min", `"delivered":[`, "1 running",
		"It works normally")
	if err := b.store.CountOutcomes(t.Context(), uuid.New(), []push.ChannelOutcomes{{Tenant: b.tenant, Channel: "sms", Attempts: 360, Rejected: 360}}); err != nil {
		t.Fatal(err)
	}
	testenv.Until(t, 50*time.Millisecond, "the channels are counted again", func() bool {
		page = b.get("/console/now")
		return strings.Contains(page.Body, "through sms are refused")
	})
	page.has(t, 200, "360 of 360 in the last five minutes", `<span class="status status-open">rejecting</span>`)
	b.get("/console/settings/channels").has(t, 200, "360 of 360 attempts refused permanently", "rejecting")
	b.who.Caller.Scopes = []string{push.ScopeRecordsRead}
	if page := b.get("/console/now"); page.Status != 200 || strings.Contains(page.Body, "the provider is not responding") {
		t.Errorf("who may not read pushes sees the channels: %d", page.Status)
	}
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/now").has(t, 403, "cannot do this")
}

// TestNow_Live streams the part that changes.
func TestNow_Live(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	server := httptest.NewServer(b.console)
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/console/now/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	part := make([]byte, 16<<10)
	n, _ := answer.Body.Read(part)
	if text := string(part[:n]); answer.StatusCode != 200 || !strings.HasPrefix(text, "data: ") || !strings.Contains(text, "Nothing is waiting") || strings.Contains(text, "<html") {
		t.Errorf("%s: %s", answer.Status, text)
	}
}

// TestNow_Words: each state that the API may tell of has its words, and the worst comes first.
func TestNow_Words(t *testing.T) {
	t.Parallel()
	states := func(field string) []string {
		f, _ := reflect.TypeFor[health.Report]().FieldByName(field)
		return strings.Split(f.Tag.Get("enum"), ",")
	}
	for _, state := range states("Postgres") {
		if postgresWords[client.StatusPostgres(state)] == "" {
			t.Errorf("Postgres %s has no words", state)
		}
	}
	for _, state := range states("Redis") {
		if redisWords[client.StatusRedis(state)] == "" {
			t.Errorf("Redis %s has no words", state)
		}
	}
	if len(queueWords) != 3 || len(channelWords) != 5 {
		t.Error("a state lacks its words")
	}
	well := client.Status{Status: client.StatusStatusReady, Postgres: client.StatusPostgresOk, Redis: client.StatusRedisOk, Queue: client.StatusQueueOk, Workers: 1}
	for want, change := range map[string]func(*nowView){
		"All systems normal":               func(*nowView) {},
		"does not respond":                 func(v *nowView) { v.Unknown = "unavailable" },
		"is stopping":                      func(v *nowView) { v.Status.Status = client.StatusStatusStopping },
		"right now: Postgres is a standby": func(v *nowView) { v.Postgres, v.Redis = client.StatusPostgresReadOnly, client.StatusRedisUnreachable },
		"no worker":                        func(v *nowView) { v.Workers, v.Queue = 0, client.StatusQueueOverdue },
		"overdue":                          func(v *nowView) { v.Queue, v.Redis = client.StatusQueueOverdue, client.StatusRedisUnreachable },
		"sms is not sending": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "push", State: client.ChannelStateUnknown}, {Name: "sms", State: client.ChannelStateFailing, Until: time.Now()}}
		},
		"through sms fail and are retried": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "sms", State: client.ChannelStateFailing}}
		},
		"through sms are refused permanently": func(v *nowView) {
			v.Channels = []client.Channel{{Name: "push", State: client.ChannelStateFailing}, {Name: "sms", State: client.ChannelStateRejecting}}
		},
		"push, mail and sms are not sending": func(v *nowView) {
			for _, name := range []string{"push", "mail", "sms"} {
				v.Channels = append(v.Channels, client.Channel{Name: name, State: client.ChannelStatePaused})
			}
		},
		"for now: Postgres has too few locks":     func(v *nowView) { v.Postgres, v.Redis = client.StatusPostgresFewLocks, client.StatusRedisEvicts },
		"for now: Redis may evict":                func(v *nowView) { v.Redis = client.StatusRedisEvicts },
		"a little slower: Redis is not reachable": func(v *nowView) { v.Redis = client.StatusRedisUnreachable },
	} {
		v := &nowView{Status: well}
		change(v)
		if got := v.Summary(); !strings.Contains(got.Sentence, want) || (got.Look == "ok") != (want == "All systems normal") {
			t.Errorf("%+v, want %q", got, want)
		}
	}
}

// TestNow_Servers: what is said of a server begins so that its name can stand there.
func TestNow_Servers(t *testing.T) {
	t.Parallel()
	for _, words := range slices.Concat(slices.Collect(maps.Values(postgresWords)), slices.Collect(maps.Values(redisWords))) {
		if !strings.HasPrefix(words, "It ") {
			t.Error(words)
		}
	}
}

// TestNow_EveryMinute: minutes without an attempt are there as well, and a line has a gap where nothing was delivered.
func TestNow_EveryMinute(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 9, 0, 30, 0, time.UTC)
	minutes := everyMinute(client.Status{AsOf: at.Add(3 * time.Minute), Attempts: client.RecentAttempts{Since: at}, Minutes: []client.StatusMinute{{At: at.Truncate(time.Minute).Add(time.Minute), Delivered: 4, LateMsP50: 250}}})
	if len(minutes) != 4 || slices.ContainsFunc(minutes, func(m client.StatusMinute) bool { return m.At.Second() != 0 }) {
		t.Fatalf("%+v", minutes)
	}
	got, err := seriesOf(minutes)
	if want := `{"at":[1795510800,1795510860,1795510920,1795510980],"delivered":[0,4,0,0],"refused":[0,0,0,0],"unknown":[0,0,0,0],"p50":[null,0.25,null,null],"p99":[null,0,null,null]}`; err != nil || got != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
}
