package pauses_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestPause_Scopes checks which due pushes a claim parks under a pause of each scope, of the tenant, of another one and of the
// operator, and that each is claimed after the end of the pause.
func TestPause_Scopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i, tt := range []struct {
		name   string
		by     pause.Pause
		parked bool
	}{
		{"all", pause.Pause{Tenant: b.TenantID, Scope: pause.All}, true},
		{"the channel", pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "log"}, true},
		{"another channel", pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "sms"}, false},
		{"the category", pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "news"}, true},
		{"another category", pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "log"}, false},
		{"the operator, all", pause.Pause{Scope: pause.All}, true},
		{"the operator, the channel", pause.Pause{Scope: pause.Channel, Name: "log"}, true},
		{"the operator, another channel", pause.Pause{Scope: pause.Channel, Name: "sms"}, false},
		{"over soon", pause.Pause{Tenant: b.TenantID, Scope: pause.All, Until: time.Now().Add(time.Hour)}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			who := fmt.Sprint("user-", i)
			d := storetest.Draft(b.TenantID, who, -time.Second)
			d.Push.Category = "news"
			p := storetest.MustBook(t, b.Store, nil, d).Push
			made := b.pauses(t, tt.by)
			c := b.MustClaim(t, who, nil)
			if want := map[bool]booking.ClaimOutcome{true: booking.Parked, false: booking.Claimed}[tt.parked]; c.Outcome != want {
				t.Fatalf("%+v, want %v", c, want)
			}
			if tt.parked {
				held := b.MustRead(t, p).Held
				if held.By != push.PausedBy+string(tt.by.Scope) || held.Since.IsZero() || !held.Until.Equal(made.Until) {
					t.Errorf("held: %+v", held)
				}
				if again := b.MustClaim(t, who, nil); again.Outcome != booking.Nothing {
					t.Errorf("parked, and claimed again: %+v", again)
				}
				b.MustAudit(t, nil)
			}
			b.ends(t, made)
			if due, _ := b.resumes(t); due > 0 != tt.parked {
				t.Errorf("%d became due", due)
			}
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pauses`); n != 0 {
				t.Errorf("%d rows of pauses are left", n)
			}
			if !tt.parked {
				b.MustFinish(t, c, storetest.Sent)
				return
			}
			if held := b.MustRead(t, p).Held; held.By != push.PausedBy+string(tt.by.Scope) || held.Until.IsZero() {
				t.Errorf("held afterwards: %+v", held)
			}
			if c = b.MustClaim(t, who, nil); c.Outcome != booking.Claimed {
				t.Fatalf("after the end: %+v", c)
			}
			b.MustFinish(t, c, storetest.Sent)
			b.MustAudit(t, nil)
		})
	}
}

// TestPause_Two checks that a push under two pauses waits for the end of both, and that the end of one is harmless.
func TestPause_Two(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", -time.Second)
	all, one := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All}), b.pauses(t, pause.Pause{Scope: pause.Channel, Name: p.Channel})
	for range 2 {
		if c := b.MustClaim(t, "anna", nil); c.Outcome == booking.Claimed {
			t.Fatal("claimed under two pauses")
		}
	}
	b.ends(t, all)
	b.resumes(t)
	if c := b.MustClaim(t, "anna", nil); c.Outcome == booking.Claimed {
		t.Fatal("claimed under one of two pauses")
	}
	b.ends(t, one)
	b.resumes(t)
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Claimed {
		t.Fatalf("after both: %+v", c)
	}
}

// TestPause_Moved checks that a parked push can be moved and canceled, and that its end restores the new time.
func TestPause_Moved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	anna, bert := b.Booked(t, "anna", -time.Second), b.Booked(t, "bert", -time.Second)
	made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All})
	b.MustClaim(t, "anna", nil)
	b.MustClaim(t, "bert", nil)
	if err := b.Move(b.Store, anna, time.Now().Add(time.Hour).Truncate(time.Second)); err != nil {
		t.Fatal(err)
	}
	b.MustCancel(t, bert)
	b.MustAudit(t, nil)
	b.ends(t, made)
	b.resumes(t)
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Nothing {
		t.Errorf("moved by an hour: %+v", c)
	}
	b.WantStatus(t, bert, push.Canceled)
	b.MustAudit(t, nil)
}

// TestPause_Expiry checks that parked pushes expire while the pause goes on, and that a due one that has expired is not parked.
func TestPause_Expiry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	anna, bert := b.Booked(t, "anna", -time.Second), b.Booked(t, "bert", -time.Second)
	b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All})
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Parked {
		t.Fatalf("%+v", c)
	}
	for _, table := range []string{"live", "pushes"} {
		b.Exec(t, `UPDATE `+table+` SET expires_at = clock_timestamp() - interval '1 millisecond'`)
	}
	if c := b.MustClaim(t, "bert", nil); c.Outcome != booking.TooLate {
		t.Errorf("an expired push: %+v", c)
	}
	if _, expired := b.resumes(t); expired != 1 {
		t.Errorf("%d expired", expired)
	}
	b.WantStatus(t, anna, push.Expired)
	b.WantStatus(t, bert, push.Expired)
}

// TestPause_Over checks that a pause ends by itself: for claims at once, and for what it has parked by the workers' loop.
func TestPause_Over(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Booked(t, "anna", -time.Second)
	b.Booked(t, "bert", -time.Second)
	made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All, Until: time.Now().Add(time.Hour)})
	if c := b.MustClaim(t, "anna", nil); c.Outcome != booking.Parked {
		t.Fatalf("%+v", c)
	}
	b.Exec(t, `UPDATE pauses SET until = clock_timestamp() WHERE id = $1`, made.ID)
	b.Exec(t, `UPDATE tenants SET pauses_version = pauses_version + 1`)
	if c := b.MustClaim(t, "bert", nil); c.Outcome != booking.Claimed {
		t.Errorf("after the end, before any loop: %+v", c)
	}
	if due, _ := b.resumes(t); due != 1 {
		t.Errorf("%d became due", due)
	}
	if got := b.Entries(t, auditlog.Filter{Action: auditlog.PauseEnd}); len(got) != 1 || got[0].Actor.Type != push.ActorSystem {
		t.Errorf("the audit log says %+v", got)
	}
}

// TestPause_ResumeRace ends a pause while many claims park under it: no push stays parked.
func TestPause_ResumeRace(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const recipients = 60
	for i := range recipients {
		b.Booked(t, fmt.Sprint("user-", i), -time.Second)
	}
	for round := range 5 {
		made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All, Reason: fmt.Sprint(round)})
		var claims sync.WaitGroup
		for i := range recipients {
			claims.Go(func() {
				c, err := b.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.TenantID, fmt.Sprint("user-", i)), Lease: time.Minute})
				if err == nil && c.Outcome == booking.Claimed {
					f := storetest.TryAgain
					f.Attempt = c.Attempted()
					_, err = b.Finish(t.Context(), f)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		b.ends(t, made)
		claims.Wait()
		b.resumes(t)
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE next_at = 'infinity' OR pause_id IS NOT NULL`); n != 0 {
			t.Fatalf("%d pushes stay parked", n)
		}
	}
	b.MustAudit(t, nil)
}

// TestPause_Bounds checks the maximum number of pauses, and that a tenant cannot end the operator's.
func TestPause_Bounds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	theirs := b.pauses(t, pause.Pause{Scope: pause.All})
	if _, err := b.DeletePause(t.Context(), b.TenantID, theirs.ID); !errors.Is(err, pause.ErrOperators) {
		t.Errorf("a tenant ends the operator's pause: %v", err)
	}
	for i := range pause.MaxPerTenant {
		b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: fmt.Sprint("c", i)})
	}
	if _, _, err := b.CreatePause(t.Context(), pause.Pause{ID: uuid.New(), Tenant: b.TenantID, Scope: pause.Channel, Name: "log"}, pause.Given{}); !errors.Is(err, pause.ErrTooMany) {
		t.Errorf("one too many: %v", err)
	}
	everything := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All})
	b.ends(t, b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "c0"})) // it is in force already
	b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "c0"})            // everything does not count
	if again := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All}); again.ID != everything.ID {
		t.Errorf("everything again: %+v", again)
	}
	seen, after := 0, pause.Position{}
	for {
		page, err := b.Pauses(t.Context(), b.TenantID, after, 30)
		if err != nil {
			t.Fatal(err)
		}
		if seen += len(page.Pauses); page.Next == nil {
			break
		}
		after = *page.Next
	}
	if seen != pause.MaxPerTenant+2 {
		t.Errorf("the list has %d", seen)
	}
	counts, err := b.PauseCounts(t.Context())
	if err != nil || counts["all"] != 2 || counts["category"] != pause.MaxPerTenant || counts["campaign"] != 0 {
		t.Errorf("%v, %v", counts, err)
	}
}
