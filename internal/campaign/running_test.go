package campaign_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// running is campaigns on real servers, and workers that advance them.
type running struct {
	*campaign.Service
	t      testing.TB
	url    string // of the database
	store  *store.Store
	pushes *schedule.Service
	policy quota.Policy
	cache  *quota.Cache
	tenant uuid.UUID
	caps   push.Caps
}

// deaf drops everything.
type deaf struct{}

func (deaf) Wake(int64, time.Time, time.Duration) {}
func (deaf) Submitted(string, string)             {}
func (deaf) CacheAnswered(string)                 {}

var quiet = slog.New(slog.DiscardHandler)

func setupRunning(t testing.TB, policy ...quota.Rule) *running {
	t.Helper()
	b := &running{t: t, policy: policy}
	b.url, b.store = stores.Take(t)
	testenv.Forge(t, b.url)
	rdb := testenv.RedisClient(t, testenv.Redis(t))
	b.cache = quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute})
	t.Cleanup(func() { _ = b.cache.Flush(context.Background()) })
	b.pushes = b.service(b.store)
	b.Service = campaign.New(b.store, time.Now, campaign.Config{MaxPerTenant: 1000, MaxAudience: 1_000_000, Channels: []string{"log"}, MaxHorizon: 365 * 24 * time.Hour})
	var err error
	if b.tenant, _, err = b.store.CreateTenant(t.Context(), uuid.NewString()); err != nil {
		t.Fatal(err)
	}
	return b
}

// open opens another store of the database.
func (b *running) open(lanes int) *store.Store {
	b.t.Helper()
	st, err := store.Open(b.t.Context(), b.url, store.Config{Lanes: lanes, Timeout: testenv.StoreTimeout, ReadTimeout: testenv.StoreTimeout})
	testenv.Check(b.t, err)
	b.t.Cleanup(st.Close)
	return st
}

func (b *running) service(st *store.Store) *schedule.Service {
	return schedule.New(st, b.cache, deaf{}, deaf{}, time.Now, schedule.Config{
		Policy: b.policy, Channels: []string{"log"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute, Caps: b.caps,
	})
}

// worker returns a loop that advances campaigns.
func (b *running) worker(st *store.Store) loop.Loop {
	return campaign.NewRunner(st, b.service(st), quiet, campaign.RunnerConfig{Policy: b.policy, Parse: campaign.Parse})
}

// draft creates a draft with recipients user-0, user-1 and so on.
func (b *running) draft(recipients int, change campaign.Change) broadcast.Campaign {
	b.t.Helper()
	if change.Message == nil {
		change.Message = new(json.RawMessage(`{"title":"hello"}`))
	}
	c, _, err := b.Create(b.t.Context(), b.tenant, change, campaign.Key{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.exec(`
		WITH r AS (
			SELECT 'user-' || n AS recipient, n FROM generate_series(0, $4::int - 1) n
		), keyed AS (
			SELECT *, ('x' || encode(substr(sha256(uuid_send($2) || convert_to(recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint AS key FROM r
		), filled AS (
			INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line)
			SELECT key & 255, $3, key, recipient, $2, $1, n + 2 FROM keyed
		)
		UPDATE campaigns SET audience_id = $3, audience = $4 WHERE id = $1`, c.ID, b.tenant, uuid.New(), recipients)
	return b.read(c)
}

func (b *running) read(c broadcast.Campaign) broadcast.Campaign {
	b.t.Helper()
	c, err := b.Campaign(b.t.Context(), b.tenant, c.ID)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *running) act(c broadcast.Campaign, action broadcast.Action) broadcast.Campaign {
	b.t.Helper()
	c, err := b.Act(b.t.Context(), b.tenant, c.ID, action, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return c
}

func (b *running) exec(sql string, args ...any) {
	b.t.Helper()
	testenv.Exec(b.t, b.url, sql, args...)
}

// until runs a worker until a campaign has a state.
func (b *running) until(w loop.Loop, c broadcast.Campaign, status broadcast.Status) broadcast.Campaign {
	b.t.Helper()
	testenv.UntilWhole(b.t, 0, func() string {
		if c = b.read(c); c.Status == status {
			return ""
		}
		b.hurry()
		if _, err := w.Pass(b.t.Context()); err != nil {
			b.t.Fatal(err)
		}
		return fmt.Sprintf("it is %s, want %s: %+v", c.Status, status, c.Progress)
	})
	return c
}

// hurry makes idle campaigns due for a visit.
func (b *running) hurry() {
	b.t.Helper()
	b.exec(`UPDATE campaigns SET lease_until = clock_timestamp() WHERE worker IS NULL AND lease_until > clock_timestamp()`)
}

// deliver sends all due pushes, and returns their number.
func (b *running) deliver() (sent int) {
	b.t.Helper()
	for {
		due, _, err := b.store.Due(b.t.Context(), booking.DueOrder{
			Lane: push.Lane{Last: push.Shards - 1}, Channels: []booking.DueChannel{{Name: "log", Most: 500}}, Most: 500, Without: []int64{},
		})
		if err != nil {
			b.t.Fatal(err)
		}
		if len(due) == 0 {
			return sent
		}
		var orders []booking.ClaimOrder
		seen := map[int64]bool{}
		for _, d := range due {
			if !seen[d.RecipientKey] {
				orders = append(orders, booking.ClaimOrder{RecipientKey: d.RecipientKey, Policy: b.policy, Lease: time.Minute})
			}
			seen[d.RecipientKey] = true
		}
		claims, err := b.store.ClaimAll(b.t.Context(), orders)
		if err != nil {
			b.t.Fatal(err)
		}
		var finishing sync.WaitGroup
		for _, c := range claims {
			if c.Outcome == booking.Claimed {
				sent++
				finishing.Go(func() { b.finish(c, push.Delivered, push.Sent) })
			}
		}
		finishing.Wait()
	}
}

// claimOne begins an attempt, which is under way until it is finished.
func (b *running) claimOne() booking.Claim {
	b.t.Helper()
	key := testenv.Query[int64](b.t, b.url, `SELECT recipient_key FROM live WHERE token IS NULL LIMIT 1`)
	c, err := b.store.Claim(b.t.Context(), booking.ClaimOrder{RecipientKey: key, Policy: b.policy, Lease: time.Minute})
	if err != nil || c.Outcome != booking.Claimed {
		b.t.Fatalf("%+v, %v", c, err)
	}
	return c
}

func (b *running) finish(c booking.Claim, outcome push.Outcome, status push.Status) {
	b.t.Helper()
	f := booking.Finish{Attempt: c.Attempted(), Outcome: outcome, Resolution: push.Resolution{Status: status}}
	if _, err := b.store.Finish(b.t.Context(), f); err != nil {
		b.t.Error(err)
	}
}

// adds checks that the numbers of a campaign add up.
func (b *running) adds(c broadcast.Campaign) {
	b.t.Helper()
	is := c.Progress
	if sum := is.Pending + is.Scheduled + is.Refused + is.OptedOut + is.Invalid + is.Sent + is.Failed + is.Expired + is.Canceled; sum != is.Audience || is.Audience != c.Size {
		b.t.Errorf("the numbers of %s make %d, want %d: %+v", c.Name, sum, c.Size, is)
	}
}

// once checks that each recipient of a campaign is decided once, and has one push if it is booked.
func (b *running) once(c broadcast.Campaign) {
	b.t.Helper()
	got := testenv.Query[string](b.t, b.url, `SELECT format('%s decided, %s of them booked, %s pushes for %s recipients',
		count(r.outcome), count(*) FILTER (WHERE r.outcome = 'booked'), (SELECT count(*) FROM pushes WHERE campaign_id = $1), (SELECT count(DISTINCT recipient) FROM pushes WHERE campaign_id = $1))
		FROM campaign_recipients r WHERE r.campaign_id = $1`, c.ID)
	booked := testenv.Query[int](b.t, b.url, `SELECT booked::int FROM campaigns WHERE id = $1`, c.ID)
	if want := fmt.Sprintf("%d decided, %d of them booked, %[2]d pushes for %[2]d recipients", c.Size, booked); got != want {
		b.t.Errorf("%s, want %s", got, want)
	}
}
