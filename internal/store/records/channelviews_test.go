package records_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/tenantchannel"
	"github.com/sendquota/sendquota/internal/testenv"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// health reads the states of the channels for a tenant.
func (b *bundle) health(t *testing.T, tenant uuid.UUID) *channelhealth.Report {
	t.Helper()
	r, err := b.ChannelHealth(t.Context(), tenant)
	if err != nil {
		t.Fatal(err)
	}
	return &r
}

// TestChannelHealth_WorstOfWorkers checks that the worst view of all workers counts, until a worker leaves or is silent
// for too long.
func TestChannelHealth_WorstOfWorkers(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	workers := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	sees := func(worker int, log, sms channelhealth.State, held time.Duration) {
		t.Helper()
		if err := b.ReplaceChannelViews(t.Context(), workers[worker], []channelhealth.View{{Channel: "log", State: log}, {Channel: "sms", State: sms, Held: held}}); err != nil {
			t.Fatal(err)
		}
	}
	wants := func(log, sms channelhealth.State, held bool) {
		t.Helper()
		r := b.health(t, b.TenantID)
		if r.Of("log").State != log || r.Of("sms").State != sms || r.Of("sms").Until.IsZero() == held || r.Of("sms").AsOf.IsZero() != (sms == "") || !r.Complete {
			t.Errorf("log %+v, sms %+v; want %s and %s", r.Of("log"), r.Of("sms"), log, sms)
		}
	}
	wants("", "", false)
	sees(0, channelhealth.Working, channelhealth.Failing, time.Minute)
	sees(1, channelhealth.Trying, channelhealth.Paused, time.Hour)
	sees(2, channelhealth.Working, channelhealth.Working, 0)
	wants(channelhealth.Trying, channelhealth.Failing, true)
	if until := b.health(t, b.TenantID).Of("sms").Until; time.Until(until) > time.Minute {
		t.Errorf("failing until %s", until)
	}
	sees(0, channelhealth.Working, channelhealth.Trying, 0) // its earlier views are gone
	wants(channelhealth.Trying, channelhealth.Paused, true)
	if err := b.DeleteChannelViews(t.Context(), workers[1]); err != nil {
		t.Fatal(err)
	}
	wants(channelhealth.Working, channelhealth.Trying, false)

	// The views of a worker that disappears soon stop to count, and are removed.
	b.Exec(t, `UPDATE channel_views SET seen_at = seen_at - interval '31 seconds' WHERE worker = $1`, [16]byte(workers[0]))
	wants(channelhealth.Working, channelhealth.Working, false)
	b.Exec(t, `UPDATE channel_views SET seen_at = seen_at - interval '30 seconds' WHERE worker = $1`, [16]byte(workers[0]))
	sees(2, channelhealth.Working, channelhealth.Working, 0)
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM channel_views`); n != 2 {
		t.Errorf("%d rows", n)
	}
}

// TestChannelHealth_HeldTenant checks that a tenant that a worker holds sees that, and that another tenant does not. It
// is forgotten when the worker releases the tenant.
func TestChannelHealth_HeldTenant(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	worker := uuid.New()
	channel := channelhealth.View{Channel: "sms", State: channelhealth.Working}
	for _, row := range []struct {
		views      []channelhealth.View
		own, other channelhealth.State
	}{
		{[]channelhealth.View{channel, {Channel: "sms", Tenant: b.TenantID, State: channelhealth.Paused, Held: time.Hour}}, channelhealth.Paused, channelhealth.Working},
		{[]channelhealth.View{channel}, channelhealth.Working, channelhealth.Working},
	} {
		if err := b.ReplaceChannelViews(t.Context(), worker, row.views); err != nil {
			t.Fatal(err)
		}
		own, other := b.health(t, b.TenantID).Of("sms"), b.health(t, uuid.New()).Of("sms")
		if own.State != row.own || own.Until.IsZero() != (row.own == channelhealth.Working) || other.State != row.other || !other.Until.IsZero() {
			t.Errorf("%v: %+v, of another tenant %+v", row.views, own, other)
		}
	}
}

// TestChannelHealth_OwnCounts checks that a tenant sees the numbers of its own waiting pushes and attempts only.
func TestChannelHealth_OwnCounts(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.Forge(t, 3, "log", false, 10*time.Second)
	b.Forge(t, 2, "sms", true, time.Minute)
	b.Forge(t, 4, "push", false, -time.Hour)                                                                                                       // not due
	b.Exec(t, `UPDATE live SET next_at = 'infinity' WHERE channel = 'log' AND push_id = (SELECT push_id FROM live WHERE channel = 'log' LIMIT 1)`) // parked
	b.Booked(t, "anna", -time.Second)
	b.MustClaim(t, "anna", nil) // it is being sent
	for _, a := range []struct {
		tenant  uuid.UUID
		outcome push.Outcome
		began   time.Duration
	}{{b.TenantID, push.Delivered, time.Second}, {b.TenantID, push.Delivered, 50 * time.Second}, {b.TenantID, push.Unknown, 2 * time.Second}, {b.TenantID, push.Refused, 61 * time.Second}, {other, push.Refused, time.Second}} {
		b.Attempted(t, a.tenant, "bert", a.outcome, a.began, 0)
	}
	r := b.health(t, b.TenantID)
	if diff := cmp.Diff(map[push.Outcome]int{push.Delivered: 2, push.Unknown: 1}, r.Of("log").Attempts); diff != "" {
		t.Error(diff)
	}
	if r.Of("log").Waits() != 2 || r.Of("sms").Waits() != 2 || r.Of("push").Waits() != 0 || !r.Complete {
		t.Errorf("log %+v, sms %+v, push %+v", r.Of("log"), r.Of("sms"), r.Of("push"))
	}
	others := b.health(t, other)
	if diff := cmp.Diff(map[string]*channelhealth.Health{"log": {Attempts: map[push.Outcome]int{push.Refused: 1}}}, others.Channels); diff != "" {
		t.Error(diff)
	}

	// The earlier attempts were not made through a channel that the tenant makes now.
	_, _, err = b.PutChannel(t.Context(), b.TenantID, "log", func(tenantchannel.Channel) (tenantchannel.Change, error) {
		return tenantchannel.Change{Name: "log", Type: "log", Settings: []byte(`{}`), Max: 20}, nil
	})
	testenv.Check(t, err)
	b.Attempted(t, b.TenantID, "carl", push.Delivered, 0, 0)
	if made := b.health(t, b.TenantID).Of("log").Attempts; made[push.Delivered] != 1 || made[push.Unknown] != 0 {
		t.Errorf("through the new channel: %v", made)
	}
}

// BenchmarkChannelHealth counts a backlog and the attempts of the last minute, beside a million pushes ahead. Both
// exceed the maximum that is counted.
func BenchmarkChannelHealth(b *testing.B) {
	s := setupNew(b)
	s.Exec(b, `
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, rank, push_id, tenant_id, channel, shard)
		SELECT i, at, at, at + interval '1 day', 0, 2, 2, gen_random_uuid(), $1, 'log', i & 255
		FROM generate_series(1, 1150000) i, LATERAL (SELECT date_trunc('second', now()) + (i - 150000) * interval '1 second' AS at) a`, s.TenantID)
	s.Exec(b, `ANALYZE live`)
	s.Exec(b, `
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
		SELECT gen_random_uuid(), 1, $1, i, i::text, 'log', clock_timestamp(), clock_timestamp(), clock_timestamp(), 'delivered' FROM generate_series(1, 150000) i`, s.TenantID)
	s.Exec(b, `ANALYZE sends`)
	for b.Loop() {
		r, err := s.ChannelHealth(b.Context(), s.TenantID)
		if err != nil || r.Complete || r.Of("log").Waits() != 100_000 || r.Of("log").Attempts[push.Delivered] != 100_000 {
			b.Fatalf("%+v, %v", r.Of("log"), err)
		}
	}
}
