package bulk_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

var quiet = slog.New(slog.DiscardHandler)

// deaf is a queue and an observer that drop everything.
type deaf struct{}

func (deaf) Wake(int64, time.Time, time.Duration) {}
func (deaf) Submitted(string, string)             {}
func (deaf) CacheAnswered(string)                 {}

// bundle is the bulk changes of a tenant on a real server.
type bundle struct {
	*bulk.Service
	url    string
	store  *store.Store
	pushes *schedule.Service
	runner loop.Loop
	tenant uuid.UUID
	at     time.Time // a full minute, in two days
}

// stores serializes the tests, because runners process all tenants.
var stores testenv.Stores

func setup(t *testing.T, policy ...quota.Rule) *bundle {
	t.Helper()
	b := &bundle{at: time.Now().UTC().Add(48 * time.Hour).Truncate(time.Hour)}
	b.url, b.store = stores.Take(t)
	rdb := testenv.RedisClient(t, testenv.Redis(t))
	b.pushes = schedule.New(b.store, quota.NewCache(rdb, redisscript.Config{Timeout: time.Minute}), deaf{}, deaf{}, time.Now, schedule.Config{
		Policy: quota.Policy(policy), Channels: []string{"sms", "email"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute,
	})
	b.Service, b.runner = bulk.New(b.store, b.pushes), bulk.NewRunner(b.store, b.pushes, quiet)
	var err error
	b.tenant, _, err = b.store.CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	return b
}

// submit books a push for a recipient at a time after b.at.
func (b *bundle) submit(t *testing.T, recipient string, after time.Duration) uuid.UUID {
	t.Helper()
	res, err := b.pushes.Submit(t.Context(), b.tenant, schedule.Request{Content: push.Content{Recipient: recipient, Message: []byte(`{"title": "Hi"}`)}, SendAt: b.at.Add(after)}, schedule.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return res.Push.ID
}

// holds books a push for each of n recipients.
func (b *bundle) holds(t *testing.T, n int) {
	t.Helper()
	b.books(t, n, func(i int) (string, time.Duration) { return fmt.Sprint("user-", i), time.Duration(i) * time.Second })
}

// row books n pushes for one recipient, a minute apart.
func (b *bundle) row(t *testing.T, n int) (ids []uuid.UUID) {
	t.Helper()
	return b.books(t, n, func(i int) (string, time.Duration) { return "aiko", time.Duration(i) * time.Minute })
}

// books books pushes, each for a recipient at a time after b.at, whatever the policy.
func (b *bundle) books(t *testing.T, n int, each func(int) (recipient string, after time.Duration)) (ids []uuid.UUID) {
	t.Helper()
	for from := 0; from < n; from += 1000 {
		o := booking.Order{Policy: quota.Policy(nil), Now: time.Now()}
		for i := from; i < min(n, from+1000); i++ {
			recipient, after := each(i)
			p := push.Push{Content: push.Content{Recipient: recipient, Channel: "sms", Message: []byte(`{}`)}, Tenant: b.tenant, SendAt: b.at.Add(after), TTL: time.Hour}
			p.ID, p.RequestedSendAt = push.NewID(p.SendAt, push.RecipientKey(p.Tenant, p.Recipient)), p.SendAt
			ids, o.Drafts = append(ids, p.ID), append(o.Drafts, booking.Draft{Push: p})
		}
		if _, err := b.store.Book(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return ids
}

// create creates a bulk change of all matching pushes.
func (b *bundle) create(t *testing.T, p bulkchange.Change) bulkchange.Change {
	t.Helper()
	p.Tenant = b.tenant
	made, _, err := b.Create(t.Context(), p, bulk.Key{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// run runs a bulk change until nothing is left to do, and returns it.
func (b *bundle) run(t *testing.T, id uuid.UUID) bulkchange.Change {
	t.Helper()
	b.passes(t, b.runner, -1)
	return b.read(t, id)
}

// passes makes n passes of a runner, or all if n is negative.
func (b *bundle) passes(t *testing.T, l loop.Loop, n int) {
	t.Helper()
	for full := true; full && n != 0; n-- {
		var err error
		if full, err = l.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func (b *bundle) read(t *testing.T, id uuid.UUID) bulkchange.Change {
	t.Helper()
	p, err := b.BulkChange(t.Context(), b.tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *bundle) push(t *testing.T, id uuid.UUID) push.Push {
	t.Helper()
	p, err := b.pushes.Push(context.WithoutCancel(t.Context()), b.tenant, id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
