package pauses_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/pause"
)

// TestParked_Counted checks that the due pushes that a pause holds are counted apart from those that wait, for the channels, the status,
// the operator and the metrics; that an attempt in progress and a push that is not due are not; and that after the end of the pause
// they wait again.
func TestParked_Counted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Booked(t, "sending", -time.Second)
	b.MustClaim(t, "sending", nil)
	b.Booked(t, "later", time.Hour)
	wants := func(waiting, paused int) {
		t.Helper()
		r, err := b.ChannelHealth(t.Context(), b.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		if h := r.Of("log"); h.Waits() != waiting || h.Stops() != paused || !r.Complete {
			t.Errorf("the channel has %d and %d, want %d waiting and %d paused", h.Waits(), h.Stops(), waiting, paused)
		}
		f, err := b.Flow(t.Context(), b.TenantID)
		if err != nil || f.Waiting != waiting || f.Stopped != paused || f.PutOff != 0 {
			t.Errorf("the status has %+v, %v, want %d waiting and %d paused", f, err, waiting, paused)
		}
		all, err := b.WaitingByTenant(t.Context(), b.TenantID)
		if err != nil || all[0].Due != waiting || all[0].Paused != paused || all[0].Waiting != 4 || all[0].UnderWay != 1 || all[0].PutOff != 0 {
			t.Errorf("the operator sees %+v, %v, want %d due and %d paused", all, err, waiting, paused)
		}
		counts, err := b.CountParked(t.Context())
		if err != nil || counts["log"] != paused {
			t.Errorf("the metrics have %v, %v, want %d", counts, err, paused)
		}
	}
	for _, recipient := range []string{"anna", "bert", "carl"} {
		b.Booked(t, recipient, -time.Second)
	}
	wants(3, 0)
	b.Exec(t, `UPDATE live SET put_off_at = now() WHERE next_at <= now() AND token IS NULL`) // by a rule, before the pause
	made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "log"})
	if n := b.parks(t, made); n != 3 {
		t.Fatalf("%d are parked", n)
	}
	wants(0, 3)
	b.ends(t, made)
	if due, _ := b.resumes(t); due != 3 {
		t.Fatalf("%d are due", due)
	}
	wants(3, 0)
}

// TestChannelHealth_StoppedBy checks which pauses stop a channel as a whole: those of everything or of its name, of the tenant or of the
// operator, while they are in force.
func TestChannelHealth_StoppedBy(t *testing.T) {
	t.Parallel()
	b := setup(t)
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	stopped := func(channel string) uuid.UUID {
		t.Helper()
		r, err := b.ChannelHealth(t.Context(), b.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		if by := r.StoppedBy(channel, time.Now()); by != nil {
			return by.ID
		}
		return uuid.Nil
	}
	for _, tt := range []struct {
		name     string
		by       pause.Pause
		log, sms bool
	}{
		{"all", pause.Pause{Tenant: b.TenantID, Scope: pause.All}, true, true},
		{"the channel", pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "log"}, true, false},
		{"the operator, the channel", pause.Pause{Scope: pause.Channel, Name: "sms"}, false, true},
		{"a category", pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "log"}, false, false},
		{"another tenant", pause.Pause{Tenant: other, Scope: pause.All}, false, false},
		{"soon over", pause.Pause{Tenant: b.TenantID, Scope: pause.All, Until: time.Now().Add(time.Hour)}, true, true},
	} {
		made := b.pauses(t, tt.by)
		for channel, want := range map[string]bool{"log": tt.log, "sms": tt.sms} {
			if got := stopped(channel); got != map[bool]uuid.UUID{true: made.ID}[want] {
				t.Errorf("%s: %s is stopped by %s", tt.name, channel, got)
			}
		}
		if tt.name == "soon over" {
			b.Exec(t, `UPDATE pauses SET until = clock_timestamp()`)
			if got := stopped("log"); got != uuid.Nil {
				t.Errorf("over, and stopped by %s", got)
			}
			continue
		}
		b.ends(t, made)
	}
	own := channelhealth.Report{Channels: map[string]*channelhealth.Health{}}
	own.Of("*log").Stopped[0], own.Of("log").Stopped[0] = 2, 1
	if h := own.SeenOwn("log"); h.Stops() != 3 {
		t.Errorf("an own channel has %d", h.Stops())
	}
}

// TestParked_ManyAreCheap checks that 100,000 parked pushes are counted in a fraction of a second.
func TestParked_ManyAreCheap(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All})
	b.ForgeMany(t, `
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, shard, rank, push_id, tenant_id, pause_id, channel)
		SELECT i, date_trunc('second', now()) - interval '1 minute', 'infinity', now() + interval '1 day', 1, 2, i & 255, 2, gen_random_uuid(), $1, $2, 'log'
		FROM generate_series(1, 99000) i`, b.TenantID, made.ID)
	b.Exec(t, `ANALYZE live`)
	for name, count := range map[string]func() (int, error){
		"channels": func() (int, error) {
			r, err := b.ChannelHealth(t.Context(), b.TenantID)
			return r.Of("log").Stops(), err
		},
		"status": func() (int, error) { f, err := b.Flow(t.Context(), b.TenantID); return f.Stopped, err },
		"metrics": func() (int, error) {
			counts, err := b.CountParked(t.Context())
			return counts["log"], err
		},
	} {
		began := time.Now()
		n, err := count()
		if took := time.Since(began); err != nil || n != 99000 || took > 5*time.Second {
			t.Errorf("%s: %d, %v, in %s", name, n, err, took)
		} else {
			t.Logf("%s took %s", name, took)
		}
	}
}
