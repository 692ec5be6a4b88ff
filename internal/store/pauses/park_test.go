package pauses_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// parks parks what is due until nothing is left, and returns the number of pushes.
func (b *bundle) parks(t *testing.T, p pause.Pause) (n int) {
	t.Helper()
	for more := true; more; {
		some, again, err := b.ParkDue(t.Context(), p.ID, everywhere())
		if err != nil {
			t.Fatal(err)
		}
		n, more = n+some, again
	}
	return n
}

// everywhere returns the keys of recipients in all shards: where each shard is a lane, pushes are parked near some recipients.
func everywhere() (keys []int64) {
	for shard := range push.Shards {
		keys = append(keys, int64(shard))
	}
	return keys
}

// TestParkDue_Scopes checks which pushes a pause of each scope parks: those that are due, of its tenant, in its scope, and not being
// sent. Each waits until the end of the pause.
func TestParkDue_Scopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sale := uuid.New()
	other, _, err := b.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	for i, tt := range []struct {
		name   string
		by     pause.Pause
		parked int
	}{
		{"all", pause.Pause{Tenant: b.TenantID, Scope: pause.All}, 3},
		{"the channel", pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "log"}, 3},
		{"another channel", pause.Pause{Tenant: b.TenantID, Scope: pause.Channel, Name: "sms"}, 0},
		{"the category", pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "news"}, 1},
		{"another category", pause.Pause{Tenant: b.TenantID, Scope: pause.Category, Name: "code"}, 0},
		{"the campaign", pause.Pause{Tenant: b.TenantID, Scope: pause.Campaign, Name: sale.String()}, 1},
		{"the operator's", pause.Pause{Scope: pause.All}, 3},
		{"of another tenant", pause.Pause{Tenant: other, Scope: pause.All}, 0},
		{"over", pause.Pause{Tenant: b.TenantID, Scope: pause.All}, 0},
	} {
		b.Exec(t, `DELETE FROM live`)
		for j, content := range []push.Push{{}, {Content: push.Content{Category: "news"}}, {Campaign: sale}, {}} {
			p, at := content, time.Now().Add(-time.Second).Truncate(time.Second)
			if j == 3 {
				at = at.Add(time.Hour) // not due
			}
			p.Tenant, p.Recipient, p.Channel, p.Message, p.TTL = b.TenantID, fmt.Sprint("user-", i, "-", j), "log", []byte(`{}`), time.Hour
			p.SendAt, p.RequestedSendAt = at, at
			p.ID = push.NewID(at, push.RecipientKey(p.Tenant, p.Recipient))
			if _, err := b.Book(t.Context(), booking.Order{Now: time.Now(), Drafts: []booking.Draft{{Push: p}}}); err != nil {
				t.Fatal(err)
			}
		}
		b.Booked(t, fmt.Sprint("sending-", i), -time.Second)
		if c := b.MustClaim(t, fmt.Sprint("sending-", i), nil); c.Outcome != booking.Claimed {
			t.Fatalf("%+v", c)
		}
		if tt.by.Scope == pause.Campaign {
			b.Exec(t, `INSERT INTO campaigns (id, tenant_id, name, message, channel) VALUES ($1, $2, 'Sale', '{}', 'log') ON CONFLICT DO NOTHING`, sale, b.TenantID)
		}
		made := b.pauses(t, tt.by)
		if tt.name == "over" {
			b.ends(t, made)
		}
		if n := b.parks(t, made); n != tt.parked {
			t.Errorf("%s: %d parked, want %d", tt.name, n, tt.parked)
		}
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE pause_id = $1 AND next_at = 'infinity'`, made.ID); n != tt.parked {
			t.Errorf("%s: %d have the pause", tt.name, n)
		}
		if tt.name != "over" {
			b.ends(t, made)
		}
		if due, _ := b.resumes(t); due != tt.parked {
			t.Errorf("%s: %d became due after the end, want %d", tt.name, due, tt.parked)
		}
	}
}

// TestParkDue_Race parks, claims and ends pauses at the same time: each push is sent, or parked and due again, and none stays parked.
func TestParkDue_Race(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const recipients = 60
	for i := range recipients {
		b.Booked(t, fmt.Sprint("user-", i), -time.Second)
	}
	var parked atomic.Int64
	for round := range 5 {
		var all sync.WaitGroup
		for i := range recipients {
			all.Go(func() {
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
		made := b.pauses(t, pause.Pause{Tenant: b.TenantID, Scope: pause.All, Reason: fmt.Sprint(round)})
		for range 3 {
			all.Go(func() {
				n, _, err := b.ParkDue(t.Context(), made.ID, everywhere())
				if err != nil {
					t.Error(err)
				}
				parked.Add(int64(n))
			})
		}
		if round%2 == 0 {
			all.Wait()
		}
		b.ends(t, made)
		all.Wait()
		b.resumes(t)
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE next_at = 'infinity' OR pause_id IS NOT NULL`); n != 0 {
			t.Fatalf("%d pushes stay parked", n)
		}
	}
	if parked.Load() == 0 {
		t.Error("nothing was parked in portions")
	}
	b.MustAudit(t, nil)
}
