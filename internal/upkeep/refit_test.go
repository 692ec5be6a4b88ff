package upkeep_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/upkeep"
	"github.com/sendquota/sendquota/internal/webhook"
)

// refitBundle is a tenant without limits and with many bookings.
type refitBundle struct {
	*bundle
	booked []push.Push // by send time and id
}

// setupRefit books pushes for some recipients at random times, from ten minutes on.
func setupRefit(t *testing.T, seed uint64, recipients, pushes int) *refitBundle {
	t.Helper()
	b := &refitBundle{bundle: setup(t, nil)}
	random := rand.New(rand.NewPCG(seed, 1))
	var members []schedule.Member
	for range pushes {
		r := request(time.Hour + time.Duration(random.IntN(3*24*3600))*time.Second)
		r.Recipient, r.Category = fmt.Sprintf("user-%d", random.IntN(recipients)), []string{"", "marketing", "free"}[random.IntN(3)]
		if random.IntN(10) == 0 {
			r.ExpiresAt = r.SendAt.Add(time.Minute)
		}
		members = append(members, schedule.Member{Request: r})
	}
	if err := b.SubmitBatch(t.Context(), b.tenant, members, true, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Err != nil {
			t.Fatal(m.Err)
		}
		b.booked = append(b.booked, m.Decision.Push)
	}
	inOrder(b.booked)
	return b
}

func inOrder(pushes []push.Push) {
	slices.SortFunc(pushes, func(a, b push.Push) int { return cmp.Or(a.SendAt.Compare(b.SendAt), bytes.Compare(a.ID[:], b.ID[:])) })
}

// refitDocument has a rolling rule, a calendar rule in a zone with half an hour of daylight saving, and a rule with a
// scope. One category is free.
func refitDocument() *policy.Document {
	return &policy.Document{
		Rules: []policy.Rule{
			{Name: "six-hours", Limit: new(2), Window: "6h"},
			{Name: "day", Limit: new(4), Per: "day", Zone: "Australia/Lord_Howe"},
			{Name: "marketing", Limit: new(1), Window: "12h", Categories: []string{"marketing"}},
		},
		Categories: map[string]policy.Category{"free": {Bypass: true, Counts: new(false)}},
	}
}

// fits returns the rules of refitDocument that forbid a push beside its recipient's other pushes, by counting.
func fits(t *testing.T, others []push.Push, p push.Push) (forbidden []string) {
	t.Helper()
	if p.Category == "free" {
		return nil
	}
	window := func(length time.Duration, limit int, counts func(push.Push) bool) bool {
		near := []push.Push{p}
		for _, o := range others {
			if counts(o) {
				near = append(near, o)
			}
		}
		for _, first := range near {
			n, contains := 0, false
			for _, o := range near {
				if !o.SendAt.Before(first.SendAt) && o.SendAt.Before(first.SendAt.Add(length)) {
					n++
					contains = contains || o.ID == p.ID
				}
			}
			if contains && n > limit {
				return false
			}
		}
		return true
	}
	if !window(6*time.Hour, 2, func(o push.Push) bool { return o.Category != "free" }) {
		forbidden = append(forbidden, "six-hours")
	}
	lordHowe, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		t.Fatal(err)
	}
	n, day := 1, p.SendAt.In(lordHowe).Format(time.DateOnly)
	for _, o := range others {
		if o.Category != "free" && o.SendAt.In(lordHowe).Format(time.DateOnly) == day {
			n++
		}
	}
	if n > 4 {
		forbidden = append(forbidden, "day")
	}
	if p.Category == "marketing" && !window(12*time.Hour, 1, func(o push.Push) bool { return o.Category == "marketing" }) {
		forbidden = append(forbidden, "marketing")
	}
	return forbidden
}

// replay computes a forecast by brute force, and returns which pushes fit.
func (b *refitBundle) replay(t *testing.T) (f policy.Forecast, fitted map[uuid.UUID]bool) {
	t.Helper()
	f.ByRule, fitted = map[string]int{}, map[uuid.UUID]bool{}
	of := map[string][]push.Push{}
	for _, p := range b.booked {
		if forbidden := fits(t, of[p.Recipient], p); forbidden != nil {
			f.Conflicts++
			for _, rule := range forbidden {
				f.ByRule[rule]++
			}
			f.First = append(f.First, policy.Conflict{Push: p.ID, SendAt: p.SendAt, Rule: forbidden[0]})
			continue
		}
		of[p.Recipient], fitted[p.ID] = append(of[p.Recipient], p), true
	}
	f.First = f.First[:min(len(f.First), 100)]
	return f, fitted
}

func (b *refitBundle) policies() *schedule.Policies {
	return schedule.NewPolicies(b.store, schedule.PoliciesConfig{Channels: []string{"log", "sms"}})
}

// TestForecast_BruteForce: a forecast equals a replay by brute force, and changes nothing.
func TestForecast_BruteForce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(2) {
		b := setupRefit(t, seed, 3, 150)
		want, _ := b.replay(t)
		got, err := b.policies().Forecast(t.Context(), b.tenant, policy.Change{Document: refitDocument()})
		if err != nil {
			t.Fatal(err)
		}
		if got.Conflicts == 0 || got.Conflicts != want.Conflicts || fmt.Sprint(got.ByRule) != fmt.Sprint(want.ByRule) || fmt.Sprint(got.First) != fmt.Sprint(want.First) {
			t.Errorf("seed %d: forecast %d %v %v\nwant %d %v %v", seed, got.Conflicts, got.ByRule, got.First, want.Conflicts, want.ByRule, want.First)
		}
		none, err := b.policies().Forecast(t.Context(), b.tenant, policy.Change{})
		if err != nil || none.Conflicts != 0 {
			t.Errorf("of the file: %+v, %v", none, err)
		}
		if v, err := b.policies().InForce(t.Context(), b.tenant); err != nil || v.Number != 0 {
			t.Errorf("version %d, %v", v.Number, err)
		}
	}
}

// crashing is a store whose worker dies at a call, before or after Postgres executes it.
type crashing struct {
	*store.Store
	left   *int
	waited chan<- struct{} // signals that the worker waits for commits of others; may be nil
}

func (c crashing) Deciders(ctx context.Context) ([]string, error) {
	deciders, err := c.Store.Deciders(ctx)
	if c.waited != nil && len(deciders) > 0 {
		select {
		case c.waited <- struct{}{}:
		default:
		}
	}
	return deciders, err
}

var errCrash = errors.New("the worker died")

func (c crashing) die() error {
	if *c.left--; *c.left == 0 {
		return errCrash
	}
	return nil
}

func (c crashing) SettleOperation(ctx context.Context, r *booking.Refitting) error {
	return cmp.Or(c.die(), c.Store.SettleOperation(ctx, r), c.die())
}

func (c crashing) Refit(ctx context.Context, r *booking.Refitting, recipient string, file booking.Terms, latest time.Time) (booking.Refitted, error) {
	if err := c.die(); err != nil {
		return booking.Refitted{}, err
	}
	done, err := c.Store.Refit(ctx, r, recipient, file, latest)
	return done, cmp.Or(err, c.die())
}

func (c crashing) FinishRefitPage(ctx context.Context, r *booking.Refitting, p booking.RefitPage) error {
	return cmp.Or(c.die(), c.Store.FinishRefitPage(ctx, r, p), c.die())
}

func (b *refitBundle) refitter(c crashing) loop.Loop {
	return upkeep.NewRefitter(c, b.cache, b.Service, quiet, upkeep.RefitterConfig{MaxHorizon: 365 * 24 * time.Hour})
}

// runToEnd runs an operation with workers that die at their next crash, and returns how many died.
func (b *refitBundle) runToEnd(t *testing.T, op uuid.UUID, crashes func(worker int) int) (died int) {
	t.Helper()
	for worker := 0; ; worker++ {
		left := crashes(worker)
		l := b.refitter(crashing{b.store, &left, nil})
		for {
			full, err := l.Pass(t.Context())
			if errors.Is(err, errCrash) {
				died++
				testenv.Exec(t, b.postgres, `UPDATE policy_operations SET lease_until = clock_timestamp() - interval '1 s' WHERE id = '`+op.String()+`'`)
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if !full {
				return died
			}
		}
		if worker > 1000 {
			t.Fatal("it never ends")
		}
	}
}

// TestRefit: each push that does not fit moves to its next free time. It is canceled if there is none, or if the
// operation cancels all. Crashes change nothing of this. The others stay where they are.
func TestRefit(t *testing.T) {
	for _, apply := range []policy.Apply{policy.Reslot, policy.Cancel} {
		t.Run(string(apply), func(t *testing.T) {
			t.Parallel()
			b := setupRefit(t, 7, 4, 200)
			_, fitted := b.replay(t)
			hook := webhook.Webhook{ID: uuid.New(), Tenant: b.tenant, URL: "https://example.com", Events: webhook.Events}
			if _, err := b.store.CreateWebhook(t.Context(), hook, "whsec_MTIzNDU2Nzg5MDEyMzQ1Ng==", 1); err != nil {
				t.Fatal(err)
			}
			v, op, err := b.policies().Change(t.Context(), b.tenant, policy.Change{Document: refitDocument(), By: "test", Apply: apply})
			if err != nil || op == nil || op.Version != v.Number || op.Status != policy.Running {
				t.Fatal(v, op, err)
			}
			died := b.runToEnd(t, op.ID, func(worker int) int { return worker + 1 })
			if died < 5 {
				t.Errorf("only %d workers died", died)
			}
			end, err := b.policies().Operation(t.Context(), b.tenant, op.ID)
			if err != nil || end.Status != policy.Finished || end.EndedAt.IsZero() || end.Looked < len(fitted) {
				t.Errorf("%+v, %v", end, err)
			}
			moved, canceled := 0, 0
			var after []push.Push
			for _, before := range b.booked {
				p := b.read(t, before.ID)
				switch {
				case fitted[p.ID]:
					if p.Status != push.Scheduled || !p.SendAt.Equal(before.SendAt) || p.Gen != before.Gen {
						t.Errorf("a push that fits changed: %+v", p)
					}
				case p.Status == push.Canceled:
					if canceled++; p.LastError != booking.ChangedReason || apply == policy.Reslot && p.TTL > 0 {
						t.Errorf("canceled: %+v", p)
					}
					continue
				default:
					if moved++; apply == policy.Cancel || !p.SendAt.After(before.SendAt) || !p.RequestedSendAt.Equal(before.RequestedSendAt) ||
						p.TTL > 0 && p.ExpiresAt.Sub(p.SendAt) != p.TTL || !p.SendAt.Before(p.ExpiresAt) {
						t.Errorf("moved from %s: %+v", before.SendAt, p)
					}
				}
				after = append(after, p)
			}
			if moved != end.Moved || canceled != end.Canceled || moved+canceled != len(b.booked)-len(fitted) || apply == policy.Reslot && moved == 0 || canceled == 0 {
				t.Errorf("%d moved, %d canceled; the operation says %d and %d, and %d did not fit", moved, canceled, end.Moved, end.Canceled, len(b.booked)-len(fitted))
			}
			for event, want := range map[webhook.Event]int{webhook.EventScheduled: moved, webhook.EventCanceled: canceled} {
				if got := testenv.Query[int](t, b.postgres, `SELECT count(DISTINCT push_id) FROM webhook_deliveries WHERE event = $1`, string(event)); got != want {
					t.Errorf("%d events %s, want %d", got, event, want)
				}
			}
			b.booked = after
			b.wantNextFree(t, fitted)
		})
	}
}

// wantNextFree checks that all bookings fit, and that moved ones are at their first free time.
func (b *refitBundle) wantNextFree(t *testing.T, fitted map[uuid.UUID]bool) {
	t.Helper()
	inOrder(b.booked)
	if f, _ := b.replay(t); f.Conflicts != 0 {
		t.Errorf("afterwards %d pushes do not fit: %v", f.Conflicts, f.ByRule)
	}
	of := map[string][]push.Push{}
	for _, p := range b.booked {
		if fitted[p.ID] {
			of[p.Recipient] = append(of[p.Recipient], p)
		}
	}
	misfits := slices.DeleteFunc(slices.Clone(b.booked), func(p push.Push) bool { return fitted[p.ID] })
	slices.SortFunc(misfits, func(a, b push.Push) int {
		return cmp.Or(a.RequestedSendAt.Compare(b.RequestedSendAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	for _, p := range misfits {
		asked := p
		asked.SendAt = p.RequestedSendAt
		for asked.SendAt.Before(p.SendAt) && fits(t, of[p.Recipient], asked) != nil {
			asked.SendAt = changes(t, of[p.Recipient], asked)
		}
		if !asked.SendAt.Equal(p.SendAt) {
			t.Errorf("push %s was moved from %s to %s; %s is free before", p.ID, p.RequestedSendAt, p.SendAt, asked.SendAt)
		}
		of[p.Recipient] = append(of[p.Recipient], p)
	}
}

// changes returns the earliest time after a blocked one that may have another answer: the start or end of a window
// with another push, or of a day.
func changes(t *testing.T, others []push.Push, p push.Push) time.Time {
	t.Helper()
	lordHowe, err := time.LoadLocation("Australia/Lord_Howe")
	if err != nil {
		t.Fatal(err)
	}
	y, m, d := p.SendAt.In(lordHowe).Date()
	first := time.Date(y, m, d+1, 0, 0, 0, 0, lordHowe)
	for _, o := range others {
		for _, length := range []time.Duration{-12 * time.Hour, -6 * time.Hour, 6 * time.Hour, 12 * time.Hour} {
			for _, at := range []time.Time{o.SendAt.Add(length), o.SendAt.Add(length + time.Second)} {
				if at.After(p.SendAt) && at.Before(first) {
					first = at
				}
			}
		}
	}
	return first
}

// TestRefit_Replaced: another change ends an operation with all its remaining work.
func TestRefit_Replaced(t *testing.T) {
	t.Parallel()
	b := setupRefit(t, 3, 3, 60)
	_, first, err := b.policies().Change(t.Context(), b.tenant, policy.Change{Document: refitDocument(), By: "test", Apply: policy.Cancel})
	if err != nil {
		t.Fatal(err)
	}
	left := 4 // settled, a recipient, and in the middle of the next one
	l := b.refitter(crashing{b.store, &left, nil})
	if _, err := l.Pass(t.Context()); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	before, err := b.policies().Operation(t.Context(), b.tenant, first.ID)
	if err != nil || before.Status != policy.Running || before.Canceled == 0 {
		t.Fatalf("%+v, %v", before, err)
	}
	_, second, err := b.policies().Change(t.Context(), b.tenant, policy.Change{By: "test", Apply: policy.NewOnly})
	if err != nil || second.Apply != policy.NewOnly {
		t.Fatal(second, err)
	}
	testenv.Exec(t, b.postgres, `UPDATE policy_operations SET lease_until = NULL`)
	b.runToEnd(t, first.ID, func(int) int { return 0 })
	after, err := b.policies().Operation(t.Context(), b.tenant, first.ID)
	if err != nil || after.Status != policy.Replaced || after.Canceled != before.Canceled || after.EndedAt.IsZero() {
		t.Errorf("%+v, %v", after, err)
	}
}

// TestRefit_BookedBefore: a push that was decided by the old policy, and committed after the change, is found.
func TestRefit_BookedBefore(t *testing.T) {
	t.Parallel()
	b := setupRefit(t, 5, 1, 1)
	// A transaction has decided, and holds the lock of its recipient.
	key := push.RecipientKey(b.tenant, "late")
	late := testenv.Connect(t, b.postgres)
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := late.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`BEGIN`)
	exec(`SELECT pg_advisory_xact_lock($1)`, key)
	_, op, err := b.policies().Change(t.Context(), b.tenant, policy.Change{Document: &policy.Document{Rules: []policy.Rule{{Name: "never", Limit: new(0), Window: "1m"}}}, By: "test", Apply: policy.Cancel})
	if err != nil {
		t.Fatal(err)
	}
	done, waited := make(chan error, 1), make(chan struct{}, 1)
	go func() {
		l := b.refitter(crashing{b.store, new(int), waited})
		full, err := true, error(nil)
		for full && err == nil {
			full, err = l.Pass(t.Context())
		}
		done <- err
	}()
	select {
	case <-waited:
	case err := <-done:
		t.Fatalf("operation %s did not wait: %v", op.ID, err)
	}
	exec(`INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard)
		SELECT gen_random_uuid(), tenant_id, $1::bigint, channel, send_at, next_at, expires_at, 1, 2, 2, $1::bigint & 255 FROM live`, key)
	exec(`INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, plan, shard)
		SELECT push_id, tenant_id, recipient_key, 'late', channel, '{}', send_at, send_at, next_at, expires_at, 'scheduled', plan, shard FROM live WHERE recipient_key = $1`, key)
	exec(`COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if n := testenv.Query[int](t, b.postgres, `SELECT count(*) FROM pushes WHERE status = 'canceled'`); n != 2 {
		t.Errorf("%d of 2 pushes are canceled", n)
	}
}
