package store_test

import (
	"errors"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// promote arms what is due within 90 seconds and returns it.
func (b *bundle) promote(t testing.TB, limit int) (armed []push.WakeUp) {
	t.Helper()
	n, err := b.Promote(t.Context(), 90*time.Second, time.Minute, limit, nil, func(w []push.WakeUp) error {
		armed = append(armed, w...)
		return nil
	})
	if err != nil || n != len(armed) {
		t.Fatalf("%d, %v; armed %+v", n, err, armed)
	}
	return armed
}

// TestPromote_DueSoon: promote arms pushes that are due within the horizon, once.
func TestPromote_DueSoon(t *testing.T) {
	t.Parallel()
	b := setup(t)
	soon, due := b.booked(t, "anna", 10*time.Second), b.booked(t, "bert", -time.Second)
	b.booked(t, "carl", time.Hour)
	for _, status := range push.Statuses {
		if status != push.Scheduled {
			b.inStatus(t, string(status), status)
		}
	}
	want := []push.WakeUp{
		{Push: soon.ID, Tenant: b.tenant, Gen: 1, RecipientKey: push.RecipientKey(b.tenant, "anna"), Channel: soon.Channel, At: soon.NextAt},
		{Push: due.ID, Tenant: b.tenant, Gen: 1, RecipientKey: push.RecipientKey(b.tenant, "bert"), Channel: due.Channel, At: due.NextAt},
	}
	asked := time.Now()
	first, second := b.promote(t, 1), b.promote(t, 10)
	got := append(second, first...)
	for i := range got {
		if in := got[i].In; in > got[i].At.Sub(asked)+time.Millisecond || in < time.Until(got[i].At) {
			t.Errorf("%s is said to be %s away", got[i].At, got[i].In)
		}
		got[i].In, got[i].Again = 0, false
	}
	if !slices.Equal(got, want) {
		t.Errorf("armed %+v, then %+v", first, second)
	}
	if again := b.promote(t, 10); len(again) != 0 {
		t.Errorf("armed again: %+v", again)
	}
}

// TestPromote_Concurrent: two promoters on two stores arm each push once.
func TestPromote_Concurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := booking.Order{}
	for range 1000 {
		o.Drafts = append(o.Drafts, draft(b.tenant, uuid.NewString(), 0))
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var (
		mu    sync.Mutex
		armed = map[uuid.UUID]int{}
		wg    sync.WaitGroup
	)
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(armed) == 1000
	}
	for _, st := range []*store.Store{b.Store, openURL(t, b.url, store.Config{})} {
		wg.Go(func() {
			for deadline := time.Now().Add(20 * time.Second); !all() && time.Now().Before(deadline); {
				_, err := st.Promote(t.Context(), time.Minute, time.Minute, 30, nil, func(wakeUps []push.WakeUp) error {
					mu.Lock()
					defer mu.Unlock()
					for _, w := range wakeUps {
						armed[w.Push]++
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for id, n := range armed {
		if n != 1 {
			t.Errorf("%s was armed %d times", id, n)
		}
	}
	if len(armed) != 1000 {
		t.Errorf("%d of 1000 were armed", len(armed))
	}
}

// TestPromote_SlowQueue: while one promoter waits for the queue, another one finds nothing to do, and pushes can be
// canceled and claimed. Those are not marked as armed.
func TestPromote_SlowQueue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	goes, stays := b.booked(t, "anna", time.Minute), b.booked(t, "bert", time.Minute)
	b.booked(t, "carl", 0)
	other := openURL(t, b.url, store.Config{})
	n, err := b.Promote(t.Context(), 2*time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error {
		if n := len((&bundle{Store: other}).promote(t, 10)); n != 0 {
			t.Errorf("the other promoter armed %d", n)
		}
		if _, err := other.Cancel(t.Context(), b.tenant, goes.ID); err != nil {
			t.Error(err)
		}
		if c := (&bundle{Store: other, tenant: b.tenant}).claim(t, "carl", nil); c.Outcome != booking.Claimed {
			t.Errorf("%+v", c)
		}
		return nil
	})
	if err != nil || n != 3 {
		t.Fatalf("%d, %v", n, err)
	}
	if armed := ask[[16]byte](t, b.db, `SELECT id FROM pushes WHERE armed_until IS NOT NULL`); armed != stays.ID {
		t.Errorf("marked as armed: %v", uuid.UUID(armed))
	}
	if n := len(b.promote(t, 10)); n != 0 {
		t.Errorf("then %d were left to arm", n)
	}
}

// TestPromote_ArmLeaseExpired: a push is armed again when its arm lease has expired, since Redis may have forgotten the
// wake-up.
func TestPromote_ArmLeaseExpired(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.booked(t, "anna", 0)
	lease := func() time.Duration {
		return time.Duration(ask[float64](t, b.db, `SELECT extract(epoch FROM armed_until - clock_timestamp())::float8 FROM pushes`) * float64(time.Second))
	}
	if n := len(b.promote(t, 10)); n != 1 || lease() <= 0 || lease() > time.Minute {
		t.Fatalf("armed %d for %s", n, lease())
	}
	b.exec(t, `UPDATE pushes SET armed_until = clock_timestamp() - interval '1 microsecond'`)
	if armed := b.promote(t, 10); len(armed) != 1 || !armed[0].Again {
		t.Errorf("armed %+v", armed)
	}
}

// TestPromote_ArmFails: a failure of the queue leaves no push armed, is no reason to try again, and is not taken for a
// failure of Postgres.
func TestPromote_ArmFails(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.booked(t, "anna", 0)
	for name, trouble := range map[string]error{
		"any": errors.New("full"), "network": &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("refused")},
	} {
		tries := 0
		_, err := b.Promote(t.Context(), time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error { tries++; return trouble })
		if !errors.Is(err, trouble) || errors.Is(err, push.ErrUnavailable) || tries != 1 {
			t.Errorf("%s: %v after %d tries", name, err, tries)
		}
	}
	if n := len(b.promote(t, 10)); n != 1 {
		t.Errorf("then %d were left to arm", n)
	}
}

// TestPromote_ChangedPlan: a push whose plan changes is armed again, since the wake-up of the old plan is stale.
func TestPromote_ChangedPlan(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, change := range []func(p push.Push){
		func(p push.Push) { b.finish(t, b.claimed(t, p), tryAgain) },
		func(p push.Push) {
			b.attempted(t, b.tenant, p.Recipient, push.Delivered, time.Second, 0)
			b.claim(t, p.Recipient, threeRules)
		},
		func(p push.Push) {
			if err := b.move(b.Store, p, p.SendAt.Add(10*time.Second)); err != nil {
				t.Error(err)
			}
		},
	} {
		p := b.booked(t, uuid.NewString(), 0)
		b.promote(t, 10)
		change(p)
		if armed := b.promote(t, 10); len(armed) != 1 || armed[0].Push != p.ID || armed[0].Gen != p.Gen+1 || !armed[0].At.Equal(b.read(t, p).NextAt) {
			t.Errorf("armed %+v", armed)
		}
	}
}

// TestDue_OldestFirst: the poll and the backlog count due pushes, whether they are armed or not.
func TestDue_OldestFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.booked(t, "later", time.Hour)
	third, first, second := b.booked(t, "c", -time.Second), b.booked(t, "a", -time.Hour), b.booked(t, "b", -time.Minute)
	b.promote(t, 10) // which makes no difference
	due, err := b.Due(t.Context(), 2, 0, nil)
	if err != nil || len(due) != 2 || due[0].Push != first.ID || due[1].Push != second.ID {
		t.Errorf("due: %+v, %v", due, err)
	}
	n, oldest, err := b.Backlog(t.Context())
	if err != nil || n != 3 || oldest < time.Hour || oldest > time.Hour+10*time.Minute {
		t.Errorf("backlog: %d, %s, %v", n, oldest, err)
	}
	b.finish(t, b.claimed(t, third), sent)
	if n, _, _ := b.Backlog(t.Context()); n != 2 {
		t.Errorf("backlog: %d", n)
	}
}
