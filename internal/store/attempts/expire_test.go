package attempts_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestExpire checks that waiting pushes end when they expire, and that no others do.
func TestExpire(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	late := func(recipient string) push.Push {
		d := storetest.Draft(b.TenantID, recipient, -time.Hour)
		d.Push.TTL = time.Minute
		return storetest.MustBook(t, b.Store, nil, d).Push
	}
	first := late("anna")
	tried := late("bert")
	b.Exec(t, `UPDATE pushes SET last_error = 'busy', attempts = 2 WHERE id = $1`, tried.ID)
	inTime := b.Booked(t, "carl", -time.Minute)
	busy := late("dora")
	b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, busy.ID)
	c := b.Claimed(t, busy)
	b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, busy.ID)

	ended, err := b.Expire(t.Context(), push.Lanes(1), 10)
	if err != nil || len(ended) != 2 {
		t.Fatalf("%+v, %v", ended, err)
	}
	for _, e := range ended {
		if (e.ID != first.ID || e.Recipient != "anna") && (e.ID != tried.ID || e.Recipient != "bert") || e.Tenant != b.TenantID {
			t.Errorf("ended %+v", e)
		}
	}
	b.WantStatus(t, first, push.Expired)
	b.WantStatus(t, inTime, push.Scheduled)
	b.WantStatus(t, busy, push.Sending)
	if got := b.MustRead(t, tried); got.LastError != "it expired before it could be sent: busy" || got.Gen != tried.Gen+1 {
		t.Errorf("%+v", got)
	}

	// The push under way returns to waiting, and then it has expired, too.
	b.MustFinish(t, c, storetest.TryAgain)
	if ended, err := b.Expire(t.Context(), push.Lanes(1), 10); err != nil || len(ended) != 1 || ended[0].ID != busy.ID {
		t.Errorf("%+v, %v", ended, err)
	}
}

// TestExpire_Concurrent checks that an expirer skips pushes that another one has locked. A claim that waits for such a
// push reads it again.
func TestExpire_Concurrent(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	d := storetest.Draft(b.TenantID, "anna", -time.Hour)
	d.Push.TTL = time.Minute
	p := storetest.MustBook(t, b.Store, nil, d).Push
	b.Exec(t, `BEGIN`)
	b.Exec(t, `UPDATE pushes SET status = 'expired', plan = plan + 1 WHERE id = $1`, p.ID)
	if ended, err := b.Expire(t.Context(), push.Lanes(1), 10); err != nil || len(ended) != 0 {
		t.Errorf("while another one is at it: %+v, %v", ended, err)
	}
	claims := make(chan booking.Claim, 1)
	go func() { claims <- b.MustClaim(t, "anna", nil) }()
	b.Waiting(t, 1)
	b.Exec(t, `COMMIT`)
	if c := <-claims; c.Outcome != booking.Again {
		t.Errorf("%+v", c)
	}
}

// TestExpire_ManyAtOnce checks that concurrent expirers of the same lanes end each push once, although rows change
// under them.
func TestExpire_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for _, channel := range []string{"log", "sms"} {
		b.Forge(t, 500, channel, channel == "sms", 48*time.Hour)
	}
	var (
		mu       sync.Mutex
		ended    = map[uuid.UUID]int{}
		expiring sync.WaitGroup
	)
	for range 4 {
		st := storetest.OpenURL(t, b.URL, store.Config{})
		expiring.Go(func() {
			for n := -1; n != 0; {
				some, err := st.Expire(t.Context(), push.Lanes(1), 20)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for _, e := range some {
					ended[e.ID]++
				}
				n = 1000 - len(ended)
				mu.Unlock()
			}
		})
	}
	for left := -1; left != 0; {
		b.Exec(t, `UPDATE live SET more_due = true WHERE push_id IN (SELECT push_id FROM live ORDER BY random() LIMIT 50)`)
		left = storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE status = 'scheduled'`)
	}
	expiring.Wait()
	for id, n := range ended {
		if n != 1 {
			t.Errorf("%s was ended %d times", id, n)
		}
	}
}

// TestNextExpiry checks that the first expiry is found among the waiting pushes of the lanes that became due after a
// time.
func TestNextExpiry(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	book := func(recipient string, in, ttl time.Duration) push.Push {
		d := storetest.Draft(b.TenantID, recipient, in)
		d.Push.TTL = ttl
		return storetest.MustBook(t, b.Store, nil, d).Push
	}
	for shards := map[int]bool{}; len(shards) < 3; { // each recipient in a shard of its own
		b.TenantID = uuid.New()
		clear(shards)
		for _, recipient := range []string{"anna", "bert", "carl"} {
			shards[push.Shard(push.RecipientKey(b.TenantID, recipient))] = true
		}
	}
	first, later := book("anna", -2*time.Hour, 3*time.Hour), book("bert", -time.Hour, 3*time.Hour)
	book("carl", time.Hour, time.Minute) // not due
	lane := func(recipient string) []push.Lane {
		shard := push.Shard(push.RecipientKey(b.TenantID, recipient))
		return []push.Lane{{First: shard, Last: shard}}
	}
	for name, row := range map[string]struct {
		lanes []push.Lane
		since time.Time
		want  time.Time
	}{
		"all":            {push.Lanes(1), time.Time{}, first.ExpiresAt},
		"since":          {push.Lanes(1), first.SendAt, later.ExpiresAt},
		"nothing since":  {push.Lanes(1), later.SendAt, time.Time{}},
		"one shard":      {lane("bert"), time.Time{}, later.ExpiresAt},
		"not due":        {lane("carl"), time.Time{}, time.Time{}},
		"without a lane": {nil, time.Time{}, time.Time{}},
	} {
		next, now, err := b.NextExpiry(t.Context(), row.lanes, row.since)
		if err != nil || !next.Equal(row.want) || now.IsZero() != (row.lanes == nil) {
			t.Errorf("%s: %s, %s, %v", name, next, now, err)
		}
	}
	b.Claimed(t, first)
	if next, _, err := b.NextExpiry(t.Context(), push.Lanes(1), time.Time{}); err != nil || !next.Equal(later.ExpiresAt) {
		t.Errorf("with one under way: %s, %v", next, err)
	}
}
