package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// pausesConfig has a slow channel, whose pushes wait in queues, and a fast one. A worker that Postgres holds up for a few seconds may
// still send: a quarter of the lease is longer.
const pausesConfig = `
policy: {rules: []}
channels:
  sms: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 9s, backoff: {first: 100ms, max: 1s}, throughput: {rate: 30}}
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 9s, backoff: {first: 100ms, max: 1s}}
delivery: {lease: 20s, arm_lease: 2s, redis_patience: 1s}
`

// pauseTakes is the time from the answer to a pause until no attempt begins in it.
const pauseTakes = 2 * time.Second

// scopes are what a push belongs to, as its message has them.
type scopes struct{ Channel, Category, Campaign string }

// stop is a pause while pushes become due all the time.
type stop struct {
	scope, name string
	id          string
	from, until time.Time // from its answer to the request to end it, or to its until
	total       bool      // nothing else can be sent meanwhile
}

func (s *stop) String() string { return strings.TrimSpace(s.scope + " " + s.name) }

func (s *stop) covers(x scopes) bool {
	switch s.scope {
	case "channel":
		return x.Channel == s.name
	case "category":
		return x.Category == s.name
	case "campaign":
		return x.Campaign != ""
	}
	return true
}

// pausesTest is an installation with three workers, and the pauses that it has met.
type pausesTest struct {
	*bundle
	workers  []*process.Process
	campaign string
	killed   time.Time // when a worker was
	stops    []*stop
	named    atomic.Int64 // the number of recipients that got a name
	fed      atomic.Int64 // pushes that were accepted for the slow channel, besides the campaign
	late     atomic.Int64 // the longest time that a request to the provider took: an attempt may arrive that much after its begin
}

// TestPauses_Faults: from two seconds after the answer to a pause no attempt begins in its scope, and others do, although a worker is
// killed, another one is replaced, Redis is flushed and stands still, and Postgres stands still. What is under way is recorded. After the end
// of each pause its pushes leave, once each.
func TestPauses_Faults(t *testing.T) {
	t.Parallel()
	redis, postgres := newOwnRedis(t), testenv.OwnPostgres(t)
	b := &pausesTest{bundle: setupWith(t, options{redis: redis.URL, database: postgres.URL, config: pausesConfig})}
	b.StartAPI()
	for range 3 {
		b.workers = append(b.workers, b.Start("worker"))
	}
	b.startsCampaign()
	fed := repeat(b.feeds)
	defer b.measures()()

	b.flows(scopes{Channel: "push", Category: "news"})
	news := b.pauses(&stop{scope: "category", name: "news", until: time.Now().Add(4 * time.Second)})
	testenv.Check(t, b.workers[0].Kill())
	b.killed = time.Now()
	b.workers[0] = b.Start("worker")
	b.stop(b.workers[1])
	b.workers[1] = b.Start("worker")
	b.flows(scopes{Channel: "push", Category: "code"})
	time.Sleep(time.Until(news.until))

	b.flows(scopes{Channel: "sms", Category: "news"})
	sms := b.pauses(&stop{scope: "channel", name: "sms"})
	b.wantRecorded(sms)
	b.resumes(sms)

	b.flows(scopes{Channel: "sms", Campaign: b.campaign})
	some := b.pauses(&stop{scope: "campaign", name: b.campaign})
	redis.do("FLUSHALL")
	redis.must(redis.Pause())
	b.resumes(some)
	redis.must(redis.Resume())

	b.flows(scopes{Channel: "push", Category: "code"}, scopes{Channel: "sms", Category: "news"})
	all := b.pauses(&stop{scope: "all", total: true})
	testenv.Check(t, postgres.Pause())
	time.Sleep(3 * time.Second) // longer than a worker trusts what it knew of pauses
	testenv.Check(t, postgres.Resume())
	b.resumes(all)

	fed()
	b.until("all pushes are sent", func() bool {
		return testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes WHERE status <> 'sent'`) == 0
	})
	for _, s := range b.stops {
		b.wantStopped(s)
	}
	b.wantOnce(testenv.Query[int](t, b.Database, `SELECT count(*) FROM pushes`))
	b.wantAudited()
}

// feeds submits some pushes of both channels and two categories, which are due at once, and as many for the slow channel as it has sent.
func (b *pausesTest) feeds() {
	waiting := int(b.fed.Load())
	for _, one := range b.provider.Arrivals() {
		var x scopes
		if json.Unmarshal(one.Message, &x) == nil && x.Channel == "sms" && x.Campaign == "" {
			waiting--
		}
	}
	var pushes []object
	add := func(channel, category string) {
		n, do := b.named.Add(1), ""
		if n%10 == 0 {
			do = "slow"
		}
		pushes = append(pushes, object{
			"recipient": fmt.Sprint(category, n), "channel": channel, "category": category, "message": object{"channel": channel, "category": category, "do": do},
		})
	}
	for _, category := range []string{"news", "code"} {
		add("push", category)
		for range min(10, 45-waiting/2) {
			add("sms", category)
		}
	}
	a, err := b.ask(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes})
	if err == nil && a.status == http.StatusOK { // while Postgres stands still, none is accepted
		b.fed.Add(int64(len(pushes) - 2))
	}
	time.Sleep(80 * time.Millisecond)
}

// startsCampaign starts a campaign through the slow channel.
func (b *pausesTest) startsCampaign() {
	b.t.Helper()
	lines := "recipient\n"
	const recipients = 130
	for i := range recipients {
		lines += fmt.Sprintf("r%d\n", i)
	}
	ctx, api := b.t.Context(), b.client()
	c, err := api.Campaigns.Create(ctx, "", client.NewCampaign{Name: "Sale", Channel: "sms", Message: client.Message{"channel": "sms", "campaign": "yes"}})
	testenv.Check(b.t, err)
	_, err = api.Campaigns.PutAudience(ctx, c.ID, strings.NewReader(lines), client.CSV)
	testenv.Check(b.t, err)
	_, err = api.Campaigns.Start(ctx, c.ID)
	testenv.Check(b.t, err)
	b.campaign = c.ID
}

// measures measures how long requests to the provider take on this machine, until the returned function is called.
func (b *pausesTest) measures() (stop func()) {
	over, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			began := time.Now()
			if res, err := httpClient.Get("http://" + b.provider.Addr + "/probe"); err == nil {
				res.Body.Close()
			}
			b.late.Store(max(b.late.Load(), int64(time.Since(began))))
			select {
			case <-over:
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return func() { close(over); <-done }
}

// arrivals calls each for every attempt that has reached the provider.
func (b *pausesTest) arrivals(each func(one testenv.Arrival, x scopes)) {
	b.t.Helper()
	for _, one := range b.provider.Arrivals() {
		if one.Push == "" {
			continue // of measures
		}
		var x scopes
		testenv.Check(b.t, json.Unmarshal(one.Message, &x))
		each(one, x)
	}
}

// flows waits until attempts of each of some kinds arrive.
func (b *pausesTest) flows(kinds ...scopes) {
	b.t.Helper()
	since := time.Now()
	for _, kind := range kinds {
		b.until(fmt.Sprintf("%+v arrive", kind), func() bool {
			n := 0
			b.arrivals(func(one testenv.Arrival, x scopes) {
				if one.At.After(since) && x.Channel == kind.Channel && x.Category == kind.Category && (x.Campaign != "") == (kind.Campaign != "") {
					n++
				}
			})
			return n >= 5
		})
	}
}

// pauses makes a pause.
func (b *pausesTest) pauses(s *stop) *stop {
	b.t.Helper()
	body := object{"scope": s.scope, "reason": "test"}
	if s.name != "" {
		body["name"] = s.name
	}
	if !s.until.IsZero() {
		body["until"] = s.until.UTC().Format(time.RFC3339Nano)
	}
	a, err := b.ask(http.MethodPost, "/v1/pauses", body)
	s.from = time.Now()
	if testenv.Check(b.t, err); a.status != http.StatusCreated {
		b.t.Fatalf("%s: %v", s, a)
	}
	s.id = a.body["id"].(string)
	b.stops = append(b.stops, s)
	return s
}

// resumes ends a pause after it has been in force for long enough to be seen.
func (b *pausesTest) resumes(s *stop) {
	b.t.Helper()
	time.Sleep(time.Until(s.from.Add(pauseTakes + time.Second)))
	s.until = time.Now()
	testenv.Check(b.t, b.client().Pauses.Delete(b.t.Context(), s.id))
}

// wantRecorded wants the attempts of a pause that were under way to be recorded as delivered while it is in force.
func (b *pausesTest) wantRecorded(s *stop) {
	b.t.Helper()
	var ids []string
	b.arrivals(func(one testenv.Arrival, x scopes) {
		if s.covers(x) && one.At.After(b.killed.Add(pauseTakes)) {
			ids = append(ids, one.Push)
		}
	})
	b.until("attempts that were under way are recorded", func() bool {
		return testenv.Query[int](b.t, b.Database, `SELECT count(*) FROM pushes WHERE id = ANY ($1::uuid[]) AND status <> 'sent'`, ids) == 0
	})
	if len(ids) == 0 {
		b.t.Error("no attempts were under way")
	}
}

// wantStopped wants no attempt to have begun in a pause: to have been claimed after its answer, or to have arrived two seconds later.
func (b *pausesTest) wantStopped(s *stop) {
	b.t.Helper()
	before, others, late := 0, 0, time.Duration(b.late.Load())
	b.arrivals(func(one testenv.Arrival, x scopes) {
		switch since := one.At.Sub(s.from); {
		case !s.covers(x) && since > pauseTakes && one.At.Before(s.until):
			others++
		case s.covers(x) && since < 0 && since > -pauseTakes:
			before++
		case s.covers(x) && since > pauseTakes+late && one.At.Before(s.until):
			b.t.Errorf("%s: an attempt arrived %s after the answer, and %s before the end", s, since, s.until.Sub(one.At))
		}
	})
	if before == 0 || others == 0 && !s.total {
		b.t.Errorf("%s: %d attempts before, and %d of others meanwhile, show nothing", s, before, others)
	}
	if n := testenv.Query[int](b.t, b.Database, `
		SELECT count(*) FROM sends WHERE started_at > $1 AND started_at < $2 AND CASE $3 WHEN 'channel' THEN channel = $4
			WHEN 'category' THEN category = $4 WHEN 'campaign' THEN campaign_id::text = $4 ELSE true END`, s.from, s.until, s.scope, s.name); n > 0 {
		b.t.Errorf("%s: %d attempts were claimed after the answer", s, n)
	}
	b.t.Logf("%s: %d attempts in the two seconds before, %d of others meanwhile; the provider was up to %s late", s, before, others, late)
}

// wantOnce wants each push to have arrived, and once, unless the killed worker was sending it.
func (b *pausesTest) wantOnce(pushes int) {
	b.t.Helper()
	first := map[string]time.Time{}
	b.arrivals(func(one testenv.Arrival, _ scopes) {
		if at, again := first[one.Push]; again && at.After(b.killed) {
			b.t.Errorf("push %s arrived twice", one.Push)
		} else if !again {
			first[one.Push] = one.At
		}
	})
	if len(first) != pushes {
		b.t.Errorf("%d pushes arrived, want %d", len(first), pushes)
	}
}
