package records_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
)

// TestFlow checks that a tenant sees its own waiting pushes, the results of its attempts of the last hour, and their
// delays, and nothing of others.
func TestFlow(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	flow := func() stats.Flow {
		t.Helper()
		f, err := b.Flow(t.Context(), b.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	if f := flow(); f.Waiting != 0 || !f.Oldest.IsZero() || f.Workers != 0 || len(f.Minutes) != 0 || !f.Complete || f.AsOf.Sub(f.Since) != time.Hour || f.All.Attempts[push.Delivered] != 0 {
		t.Errorf("of nothing: %+v", f)
	}
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.Forge(t, 3, "log", false, 10*time.Second)
	b.Forge(t, 2, "sms", true, time.Minute)
	b.Forge(t, 4, "push", false, -time.Hour)                                                                                                       // not due
	b.Exec(t, `UPDATE live SET next_at = 'infinity' WHERE channel = 'log' AND push_id = (SELECT push_id FROM live WHERE channel = 'log' LIMIT 1)`) // parked
	oldest := storetest.Ask[time.Time](t, b.DB, `SELECT min(send_at) FROM live WHERE channel = 'sms'`)
	b.Booked(t, "anna", -time.Second)
	b.MustClaim(t, "anna", nil) // it is being sent
	for i, a := range []struct {
		tenant  uuid.UUID
		outcome push.Outcome
		began   time.Duration
		late    time.Duration
	}{
		{b.TenantID, push.Delivered, 30 * time.Minute, 100 * time.Millisecond}, {b.TenantID, push.Delivered, 30*time.Minute + time.Millisecond, 300 * time.Millisecond},
		{b.TenantID, push.Delivered, 50 * time.Minute, 2 * time.Second}, {b.TenantID, push.Unknown, time.Second, time.Hour}, {b.TenantID, push.Refused, time.Second, time.Hour},
		{b.TenantID, push.Refused, 61 * time.Minute, 0}, {other, push.Refused, time.Second, 0},
	} {
		b.Exec(t, `
			INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
			SELECT gen_random_uuid(), 1, $1, $2, 'bert', 'log', ended - $3::interval, ended - interval '1 ms', ended, ended, $4
			FROM (SELECT date_bin('1 minute', clock_timestamp(), '2000-01-01Z') - $5::interval AS ended) e`, a.tenant, int64(i), a.late, string(a.outcome), a.began)
	}
	for i := range 2 {
		if err := b.ReplaceChannelViews(t.Context(), uuid.UUID{byte(i + 1)}, []channelhealth.View{{Channel: "log", State: channelhealth.Working}, {Channel: "sms", State: channelhealth.Working}}); err != nil {
			t.Fatal(err)
		}
	}
	f := flow()
	if f.Waiting != 4 || !f.Oldest.Equal(oldest) || f.Workers != 2 || !f.Complete {
		t.Errorf("%+v, want the oldest at %s", f, oldest)
	}
	if a := f.All; a.Attempts[push.Delivered] != 3 || a.Attempts[push.Refused] != 1 || a.Attempts[push.Unknown] != 1 || a.LateP50 != 300*time.Millisecond || a.LateP99 != 2*time.Second {
		t.Errorf("all: %+v", a)
	}
	if len(f.Minutes) != 3 {
		t.Fatalf("%d minutes: %+v", len(f.Minutes), f.Minutes)
	}
	if m := f.Minutes[1]; m.Attempts[push.Delivered] != 2 || m.LateP50 != 100*time.Millisecond || m.LateP99 != 300*time.Millisecond || m.At.Second() != 0 {
		t.Errorf("%+v", m)
	}
	if m := f.Minutes[2]; m.Attempts[push.Delivered] != 0 || m.Attempts[push.Unknown] != 1 || m.LateP99 != 0 {
		t.Errorf("%+v", m)
	}
}

// TestFlow_ManyAttempts checks that the latest attempts are counted if an hour has too many, and that their beginning
// is returned.
func TestFlow_ManyAttempts(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.ForgeMany(t, `
		INSERT INTO sends (push_id, attempt, tenant_id, shard, recipient_key, recipient, channel, send_at, started_at, lease_until, ended_at, outcome)
		SELECT gen_random_uuid(), 1, $1, i & 255, i, i::text, 'log', at, at, at, at, 'delivered'
		FROM generate_series(1, 50001) i, LATERAL (SELECT clock_timestamp() - i * interval '1 ms' AS at) a`, b.TenantID)
	f, err := b.Flow(t.Context(), b.TenantID)
	if err != nil {
		t.Fatal(err)
	}
	if ago := f.AsOf.Sub(f.Since); f.Complete || f.All.Attempts[push.Delivered] != 50_000 || ago < 50*time.Second || ago > 40*time.Minute {
		t.Errorf("%+v, since %s ago", f.All, ago)
	}
}
