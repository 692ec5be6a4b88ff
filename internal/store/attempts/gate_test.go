package attempts_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestGate checks whether the gate lets a due push of anna pass, after her earlier sends.
func TestGate(t *testing.T) {
	t.Parallel()
	type attempt struct {
		recipient    string
		outcome      push.Outcome
		began, ended time.Duration // ago
	}
	const s = time.Second
	minute := func(n int) quota.Policy { return quota.Policy{{Name: "minute", Limit: n, Window: time.Minute}} }
	for _, row := range []struct {
		name    string
		policy  quota.Policy
		sends   []attempt
		want    booking.ClaimOutcome
		freedBy int // a minute after the end of this send is the next legal time
	}{
		{"nothing was sent", minute(1), nil, booking.Claimed, 0},
		{"delivered", minute(1), []attempt{{"anna", push.Delivered, 31 * s, 30 * s}}, booking.PutOff, 0},
		{"perhaps delivered", minute(1), []attempt{{"anna", push.Unknown, 31 * s, 30 * s}}, booking.PutOff, 0},
		{"surely not delivered", minute(1), []attempt{{"anna", push.Refused, 31 * s, 30 * s}}, booking.Claimed, 0},
		{"began before the window, ended in it", minute(1), []attempt{{"anna", push.Delivered, 80 * s, 30 * s}}, booking.PutOff, 0},
		{"ended before the window", minute(1), []attempt{{"anna", push.Delivered, 80 * s, 61 * s}}, booking.Claimed, 0},
		{"soon out of the window", minute(1), []attempt{{"anna", push.Delivered, 80 * s, 59 * s}}, booking.Wait, 0},
		{"to another recipient", minute(1), []attempt{{"bert", push.Delivered, 31 * s, 30 * s}}, booking.Claimed, 0},
		{"one of two", minute(2), []attempt{{"anna", push.Delivered, 31 * s, 30 * s}}, booking.Claimed, 0},
		{"two of two", minute(2), []attempt{{"anna", push.Delivered, 41 * s, 40 * s}, {"anna", push.Unknown, 31 * s, 30 * s}}, booking.PutOff, 0},
		{"three of two, in a lowered limit", minute(2), []attempt{{"anna", push.Delivered, 41 * s, 40 * s}, {"anna", push.Delivered, 31 * s, 30 * s}, {"anna", push.Delivered, 21 * s, 20 * s}}, booking.PutOff, 1},
		{"a refused one between", minute(2), []attempt{{"anna", push.Delivered, 41 * s, 40 * s}, {"anna", push.Refused, 31 * s, 30 * s}}, booking.Claimed, 0},
		{"another rule", append(minute(5), quota.Rule{Name: "30s", Limit: 1, Window: 30 * s}), []attempt{{"anna", push.Delivered, 6 * s, 5 * s}}, booking.PutOff, -1},
		{"no rule", nil, []attempt{{"anna", push.Delivered, s, 0}}, booking.Claimed, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			var (
				b    *bundle
				p    push.Push
				c    booking.Claim
				ends []time.Time
			)
			for try := 1; ; try++ {
				b, ends = setup(t), nil
				p = b.Booked(t, "anna", -time.Second)
				b.Attempted(t, uuid.New(), "anna", push.Delivered, s, 0) // of another tenant
				forged := time.Now()
				for _, a := range row.sends {
					ends = append(ends, b.Attempted(t, b.TenantID, a.recipient, a.outcome, a.began, a.ended))
				}
				if c = b.MustClaim(t, "anna", row.policy); c.Outcome == row.want {
					break
				}
				if row.want != booking.Wait || time.Since(forged) < time.Second || try == 50 { // otherwise the machine took longer than the wait
					t.Fatalf("%+v", c)
				}
			}
			after := b.MustRead(t, p)
			switch c.Outcome {
			case booking.Wait:
				if c.Wait <= 0 || c.Wait > time.Second {
					t.Errorf("asks to wait for %s", c.Wait)
				}
			case booking.PutOff:
				free := ends[max(0, row.freedBy)].Add(time.Minute)
				if row.freedBy < 0 {
					free = ends[0].Add(30 * s)
				}
				if !after.NextAt.Equal(free) || !c.Push.NextAt.Equal(free) || after.Gen != p.Gen+1 || after.Status != push.Scheduled || !after.SendAt.Equal(p.SendAt) || after.Attempts != 0 {
					t.Errorf("put off from %s to %s, want %s: %+v", p.NextAt, after.NextAt, free, after)
				}
				if again := b.MustClaim(t, "anna", row.policy); again.Outcome != booking.Nothing {
					t.Errorf("then %+v", again)
				}
			}
		})
	}
}

// TestGate_BeyondExpiry checks that the gate puts a push off until its expiry at most.
func TestGate_BeyondExpiry(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]quota.Policy{
		"too late":   {{Name: "hour", Limit: 1, Window: time.Hour}},
		"not at all": {{Name: "never", Limit: 0, Window: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Attempted(t, b.TenantID, "anna", push.Delivered, time.Second, 0)
			d := storetest.Draft(b.TenantID, "anna", 0)
			d.Push.TTL = 40 * time.Minute
			p := storetest.MustBook(t, b.Store, nil, d).Push
			if c := b.MustClaim(t, "anna", policy); c.Outcome != booking.PutOff || !c.Push.NextAt.Equal(p.ExpiresAt) || !b.MustRead(t, p).NextAt.Equal(p.ExpiresAt) {
				t.Fatalf("%+v", c)
			}
			if c := b.MustClaim(t, "anna", policy); c.Outcome != booking.Nothing {
				t.Errorf("then %+v", c)
			}
		})
	}
}

// TestGate_JustBeforeExpiry checks that the claim of a push that expires in a moment waits for that. If it put the push
// off, the push would be due again at once.
func TestGate_JustBeforeExpiry(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "hour", Limit: 1, Window: time.Hour}}
	var (
		b *bundle
		p push.Push
	)
	for try := 1; ; try++ {
		b = setup(t)
		b.Attempted(t, b.TenantID, "anna", push.Delivered, time.Second, 0)
		p = b.Booked(t, "anna", -time.Second)
		forged := time.Now()
		b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() + interval '1.9 seconds' WHERE id = $1`, p.ID)
		c := b.MustClaim(t, "anna", policy)
		if c.Outcome == booking.Wait && c.Wait > 0 && c.Wait <= 1900*time.Millisecond {
			break
		}
		if c.Outcome != booking.TooLate || time.Since(forged) < 1900*time.Millisecond || try == 50 { // otherwise the machine took longer than that
			t.Fatalf("%+v", c)
		}
	}
	b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, p.ID)
	if c := b.MustClaim(t, "anna", policy); c.Outcome != booking.TooLate || c.Push.ID != p.ID {
		t.Errorf("then %+v", c)
	}
	b.WantStatus(t, p, push.Expired)
}

// TestClaim_TooLate checks that a claim ends an expired push before it tests the gate.
func TestClaim_TooLate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := storetest.Draft(b.TenantID, "anna", -time.Hour)
	d.Push.TTL = time.Minute
	p := storetest.MustBook(t, b.Store, nil, d).Push
	next := b.Booked(t, "anna", -time.Minute)
	if c := b.MustClaim(t, "anna", quota.Policy{{Limit: 0, Window: time.Minute}}); c.Outcome != booking.TooLate || c.Push.ID != p.ID {
		t.Fatalf("%+v", c)
	}
	if got := b.MustRead(t, p); got.Status != push.Expired || got.Gen != p.Gen+1 || got.LastError == "" || len(got.Sends) != 0 {
		t.Errorf("%+v", got)
	}
	b.Claimed(t, next)
}
