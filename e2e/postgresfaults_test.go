package e2e

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// postgresConfig lets an attempt that was lost be made again soon.
const postgresConfig = `
policy:
  rules: ` + modelRules + `
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1500ms, backoff: {first: 200ms, max: 1s}}
delivery: {lease: 3s, arm_lease: 2s}
`

// ownPostgres is a Postgres that a test may ruin. The services use it as a
// role of their own, which can be kept out.
type ownPostgres struct {
	t *testing.T
	*devstack.Server
	service string // URL for the services
}

func newOwnPostgres(t *testing.T) *ownPostgres {
	t.Helper()
	p := &ownPostgres{t: t, Server: testenv.OwnPostgres(t)}
	u, err := url.Parse(p.URL)
	testenv.Check(t, err)
	u.User = url.User("service")
	p.service = u.String()
	p.do(`CREATE ROLE service LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO service; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO service; GRANT ALL ON SCHEMA public TO service`)
	return p
}

func (p *ownPostgres) do(sql string) {
	p.t.Helper()
	p.must(devstack.Exec(p.t.Context(), p.URL, sql))
}

func (p *ownPostgres) must(err error) { p.t.Helper(); testenv.Check(p.t, err) }

const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'service'`

// postgresFault is a fault of Postgres while models run. A fault with a duration ends when every model has had an
// error.
type postgresFault struct {
	name       string
	begin, end func(p *ownPostgres)
	lasts      time.Duration        // at least
	again      func(p *ownPostgres) // until the models are done
	shownToo   string               // tests of a lower layer, and of attempts, that show it where the run is to be short
}

var postgresFaults = []postgresFault{
	{name: "restarted at once", begin: func(p *ownPostgres) { p.must(p.Kill()); p.must(p.Restart(context.Background())) }},
	{
		name: "backends terminated", begin: func(*ownPostgres) {}, again: func(p *ownPostgres) { p.do(terminate) },
		shownToo: "TestBook_ConnectionsCut, TestClaim_ConnectionsCut, TestWorker_RepeatsFinish",
	},
	{
		name:  "no connections left",
		begin: func(p *ownPostgres) { p.do(`ALTER ROLE service CONNECTION LIMIT 0`); p.do(terminate) },
		end:   func(p *ownPostgres) { p.do(`ALTER ROLE service CONNECTION LIMIT -1`) },
	},
	{ // what was connected before must not stay so when it is over
		name: "read only",
		begin: func(p *ownPostgres) {
			p.do(`ALTER ROLE service SET default_transaction_read_only = on`)
			p.do(terminate)
		},
		end:      func(p *ownPostgres) { p.do(`ALTER ROLE service RESET default_transaction_read_only`) },
		shownToo: "TestStore_DropsReadOnlyConnections, TestFinish_ReadOnlyPostgres",
	},
	{
		name: "silent", lasts: 40 * time.Second,
		begin: func(p *ownPostgres) { p.must(p.Pause()) },
		end:   func(p *ownPostgres) { p.must(p.Resume()) },
	},
}

// TestPostgresFaults checks that during each fault callers get a 503 with the time of the next try, that repeated
// requests get the exact answer, that no accepted push is lost or booked twice, and that workers recover by themselves.
func TestPostgresFaults(t *testing.T) {
	t.Parallel()
	for name, long := range map[string]bool{"short": false, "long": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newOwnPostgres(t)
			b := setupWith(t, options{database: p.URL, config: postgresConfig})
			b.Env = append(b.Env, "DATABASE_URL="+p.service)
			b.StartAPI()
			other, worker := b.beside(), b.startWatchedWorker()
			for _, f := range postgresFaults {
				if long == (f.lasts > 0) && !(testing.Short() && f.shownToo != "") {
					f.through(p, b, other, worker)
				}
			}
			b.wantNoBursts()
			b.wantAudited()
		})
	}
}

// through has an installation with two APIs meet the fault.
func (f postgresFault) through(p *ownPostgres, b, other *bundle, worker watched) {
	t := b.t
	t.Log(f.name)
	all := newModels(t, f.name, someModels(), "", b, other)
	runModels(all, 5)()
	asked := len(b.provider.Arrivals())
	accepted := b.accept(f.name+": during", 2*time.Second, object{})
	maps.Copy(accepted, b.accept(f.name+": under way", 0, object{"do": "slow", "times": 1}))
	b.until("attempts are under way", func() bool { return len(b.provider.Arrivals()) >= asked+6 })

	allFailed := func() bool { return totals(all)[unavailable] >= int64(len(all)) || t.Context().Err() != nil }
	done := runModelsUntil(all, 10, func() bool { return f.end == nil || allFailed() }) // on a slow machine, all steps may be made before the fault
	over := time.After(f.lasts)
	f.begin(p)
	if f.end != nil {
		b.until("both APIs say that they are unavailable", func() bool { return b.postgresIsAway() && other.postgresIsAway() })
		b.until("the models get errors", allFailed)
		b.until("the worker says so, too", func() bool { return worker.metric(`sendquota_up{server="postgres"}`) == 0 })
		<-over
		f.end(p)
	}
	if f.again != nil {
		f.repeat(b, p, all, done)
	}
	b.until("the APIs are ready again", func() bool { return redisIs("ok", b, other) })
	maps.Copy(accepted, b.accept(f.name+": after", 0, object{}))
	maps.Copy(accepted, other.accept(f.name+": after, too", 0, object{}))
	done()
	pushes := len(accepted)
	b.until("all that was accepted is sent", func() bool {
		maps.DeleteFunc(accepted, func(id string, _ time.Time) bool { return strings.HasPrefix(b.outcomes("/v1/pushes/"+id), "sent ") })
		return len(accepted) == 0
	})
	runModels(all, 3)()

	checkModels(b, all)
	n, some := totals(all), int64(len(all))
	t.Logf("booked, refused, freed, unavailable: %v; the provider was asked %d times for %d pushes", n, len(b.provider.Arrivals())-asked, pushes)
	if n[booked] < 2*some || n[refused] < some/2 || n[freed] < some/2 || f.end != nil && n[unavailable] == 0 {
		t.Errorf("too little happened to show anything")
	}
}

// repeat repeats the fault whenever models have had some more answers, until they are done.
func (f postgresFault) repeat(b *bundle, p *ownPostgres, all []*model, done func()) {
	over := make(chan struct{})
	go func() { done(); close(over) }()
	answered := func() int64 { n := totals(all); return n[booked] + n[refused] + n[freed] }
	b.until("the models are done", func() bool {
		f.again(p)
		for next := answered() + 40; answered() < next; time.Sleep(time.Millisecond) {
			select {
			case <-over:
				return true
			default:
			}
		}
		return false
	})
}

// postgresIsAway asks for readiness.
func (b *bundle) postgresIsAway() bool {
	ready, err := b.ask("GET", "/readyz", nil)
	testenv.Check(b.t, err)
	return ready.status == http.StatusServiceUnavailable && ready.header.Get("Retry-After") != "" && ready.body["status"] == "unavailable" && (ready.body["postgres"] == "unreachable" || ready.body["postgres"] == "read_only")
}

// wantNoBursts wants no recipient to have got more than the rules allow, even
// where a push came twice.
func (b *bundle) wantNoBursts() {
	b.t.Helper()
	got := map[string][]time.Time{}
	for _, one := range b.provider.Arrivals() {
		got[one.Recipient] = append(got[one.Recipient], one.At)
		if one.Key != one.Push {
			b.t.Errorf("push %s came with key %s", one.Push, one.Key)
		}
	}
	for recipient, times := range got {
		if !modelLimits.fit(times) {
			b.t.Errorf("%s got pushes at %v", recipient, clocks(times))
		}
	}
}
