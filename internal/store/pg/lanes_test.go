package pg_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// owned takes lanes for a worker, with a lease of an hour.
func (b *bundle) owned(t testing.TB, worker uuid.UUID, lanes []push.Lane) []push.Lane {
	t.Helper()
	owned, err := b.OwnLanes(t.Context(), worker, lanes, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return owned
}

// converge calls OwnLanes for the workers in turn until nothing changes. It checks that each lane then keeps one owner,
// and that no worker has two lanes more than another.
func (b *bundle) converge(t testing.TB, lanes []push.Lane, workers ...uuid.UUID) {
	t.Helper()
	for range len(lanes) + 1 {
		for _, w := range workers {
			b.owned(t, w, lanes)
		}
	}
	b.wantEqualParts(t, lanes, workers)
}

func (b *bundle) wantEqualParts(t testing.TB, lanes []push.Lane, workers []uuid.UUID) {
	t.Helper()
	var all []push.Lane
	for _, w := range workers {
		owned := b.owned(t, w, lanes)
		if n := len(owned); n < len(lanes)/len(workers) || n > (len(lanes)+len(workers)-1)/len(workers) {
			t.Errorf("one of %d workers owns %d of %d lanes", len(workers), n, len(lanes))
		}
		all = append(all, owned...)
		for _, other := range workers {
			b.owned(t, other, lanes)
		}
		if again := b.owned(t, w, lanes); !slices.Equal(again, owned) {
			t.Errorf("lanes go round: %v, then %v", owned, again)
		}
	}
	slices.SortFunc(all, func(a, b push.Lane) int { return a.First - b.First })
	if !slices.Equal(all, lanes) {
		t.Errorf("owned are %v", all)
	}
}

// TestOwnLanes_Workers checks the owners of lanes while workers die, start, leave and return.
func TestOwnLanes_Workers(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	lanes := push.Lanes(4)
	first, second, third, fourth, fifth := uuid.New(), uuid.New(), uuid.New(), uuid.New(), uuid.New()
	if owned := b.owned(t, first, lanes); !slices.Equal(owned, lanes) {
		t.Fatalf("the only worker owns %v", owned)
	}
	if owned := b.owned(t, second, lanes); len(owned) != 1 {
		t.Errorf("at its first call the second one owns %v", owned)
	}
	b.converge(t, lanes, first, second)

	b.Exec(t, `UPDATE lanes SET owned_until = clock_timestamp() WHERE owner = $1`, first)
	if owned := b.owned(t, second, lanes); !slices.Equal(owned, lanes) {
		t.Fatalf("one is dead, and the other one owns %v", owned)
	}
	b.converge(t, lanes, second, third, fourth, fifth)
	if err := b.LeaveLanes(t.Context(), third); err != nil {
		t.Fatal(err)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM lanes WHERE owner IS NOT NULL`); n != 3 {
		t.Errorf("one left, and %d lanes are owned", n)
	}
	b.converge(t, lanes, second, fourth, fifth)
	b.converge(t, lanes, first, second, fourth, fifth)
}

// TestOwnLanes_Lease checks that a lease has the length that the call asks for, and that each call renews it.
func TestOwnLanes_Lease(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	lanes, worker, other := push.Lanes(2), uuid.New(), uuid.New()
	for range 2 {
		b.Exec(t, `UPDATE lanes SET owned_until = clock_timestamp() + interval '1 second' WHERE owner = $1`, worker)
		b.owned(t, worker, lanes)
		if ok := storetest.Ask[bool](t, b.DB, `SELECT bool_and(owned_until BETWEEN clock_timestamp() + interval '50 minutes' AND clock_timestamp() + interval '1 hour')
			FROM lanes WHERE owner = $1`, worker); !ok {
			t.Error("the lease is not an hour")
		}
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM lanes WHERE owner = $1`, worker); n != 2 {
		t.Errorf("%d rows have an owner", n)
	}
	if owned := b.owned(t, other, lanes); len(owned) != 1 || owned[0] == b.owned(t, worker, lanes)[0] {
		t.Errorf("the other one owns %v", owned)
	}
}

// TestOwnLanes_FromTheLargest checks that a worker takes lanes from the largest owner, until that one has just one
// more.
func TestOwnLanes_FromTheLargest(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	lanes, most, few, worker := push.Lanes(8), uuid.New(), uuid.New(), uuid.New()
	b.Exec(t, `UPDATE lanes SET owner = CASE WHEN shard < 160 THEN $1::uuid ELSE $2 END, owned_until = clock_timestamp() + interval '1 hour'`, most, few)
	for want := range 4 {
		owned := b.owned(t, worker, lanes)
		if n := min(want+1, 2); len(owned) != n || slices.ContainsFunc(owned, func(l push.Lane) bool { return l.First >= 160 }) {
			t.Errorf("call %d: owns %v", want+1, owned)
		}
	}
}

// TestOwnLanes_ManyAtOnce checks that workers that call concurrently come to own equal parts, and never deadlock.
func TestOwnLanes_ManyAtOnce(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	lanes := push.Lanes(64)
	var (
		workers []uuid.UUID
		calling sync.WaitGroup
	)
	for range 6 {
		worker, st := uuid.New(), storetest.OpenURL(t, b.URL, pg.Config{MaxConns: 2})
		workers = append(workers, worker)
		calling.Go(func() {
			for i := range 70 {
				if _, err := st.OwnLanes(t.Context(), worker, lanes, time.Hour); err != nil {
					t.Error(err)
				}
				if i == 20 {
					if err := st.LeaveLanes(t.Context(), worker); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	calling.Wait()
	for range 64 { // as many as one lane a call may need, if most of the calls above were made while one worker was alone
		for _, w := range workers {
			b.owned(t, w, lanes)
		}
	}
	b.wantEqualParts(t, lanes, workers)
	if n := storetest.Ask[int](t, b.DB, `SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`); n != 0 {
		t.Errorf("%d circles", n)
	}
}

// TestOwnLanes_OtherSize checks that workers that divide the shards differently still own all of them.
func TestOwnLanes_OtherSize(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	old, new1, new2 := uuid.New(), uuid.New(), uuid.New()
	if owned := b.owned(t, old, push.Lanes(4)); len(owned) != 4 {
		t.Fatal(owned)
	}
	for range 10 {
		var looked [push.Shards]bool
		for _, owned := range [][]push.Lane{b.owned(t, old, push.Lanes(4)), b.owned(t, new1, push.Lanes(8)), b.owned(t, new2, push.Lanes(8))} {
			for _, l := range owned {
				for s := l.First; s <= l.Last; s++ {
					looked[s] = true
				}
			}
		}
		if slices.Contains(looked[:], false) {
			t.Fatalf("not all shards have an owner: %v", looked)
		}
	}
	if err := b.LeaveLanes(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	b.converge(t, push.Lanes(8), new1, new2)
}

// inLanes books a push in each of four lanes.
func (b *bundle) inLanes(t testing.TB, lanes []push.Lane) (pushes []push.Push) {
	t.Helper()
	for _, l := range lanes {
		pushes = append(pushes, b.Booked(t, recipientIn(l, b.TenantID), -time.Hour))
	}
	return pushes
}

// recipientIn returns a recipient of a tenant in a lane.
func recipientIn(l push.Lane, tenant uuid.UUID) string {
	for {
		recipient := uuid.NewString()
		if s := push.Shard(push.RecipientKey(tenant, recipient)); l.First <= s && s <= l.Last {
			return recipient
		}
	}
}

// TestExpire_Lanes checks that only pushes of the lanes expire, of either kind and for any channel.
func TestExpire_Lanes(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	lanes := push.Lanes(4)
	pushes := b.inLanes(t, lanes)
	pushes = append(pushes, b.inLanes(t, lanes)...)
	b.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp()`)
	for i, l := range lanes { // in the first and in the last shard of each lane
		b.Exec(t, `UPDATE pushes SET recipient_key = $2, channel = 'fax' WHERE id = $1`, pushes[i].ID, 256+l.First)
		b.Exec(t, `UPDATE live SET rank = 3, phase = 3 WHERE push_id = $1`, pushes[i].ID)
		b.Exec(t, `UPDATE pushes SET recipient_key = $2 WHERE id = $1`, pushes[4+i].ID, 256+l.Last)
	}
	b.Store = storetest.OpenURL(t, b.URL, pg.Config{Channels: []string{"log"}})
	expire := func(limit int, lanes ...push.Lane) []booking.Ended {
		ended, err := b.Expire(t.Context(), lanes, limit)
		if err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if ended := expire(10); len(ended) != 0 {
		t.Errorf("in no lane: %+v", ended)
	}
	if ended := expire(10, lanes[3], lanes[1]); len(ended) != 4 {
		t.Errorf("ended %+v", ended)
	}
	for i, p := range pushes {
		if got, want := storetest.Ask[string](t, b.DB, `SELECT status FROM pushes WHERE id = $1`, p.ID), []push.Status{push.Scheduled, push.Expired}[i%2]; got != string(want) {
			t.Errorf("push %s is %s, want %s", p.ID, got, want)
		}
	}
	if got := storetest.Ask[string](t, b.DB, `SELECT last_error FROM pushes WHERE id = $1`, pushes[1].ID); got != "it expired before it could be sent: its channel is not configured any more" {
		t.Error(got)
	}
	if ended := expire(3, lanes...); len(ended) != 3 {
		t.Errorf("of four, up to three: %+v", ended)
	}
	if ended := expire(3, lanes...); len(ended) != 1 {
		t.Errorf("the last one: %+v", ended)
	}
}

// TestLost_Lanes checks that Lost returns only attempts of the lanes.
func TestLost_Lanes(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	lanes := push.Lanes(4)
	pushes := b.inLanes(t, lanes)
	for _, p := range pushes {
		b.Claimed(t, p)
	}
	b.Exec(t, `UPDATE live SET next_at = clock_timestamp()`)
	for want, some := range [][]push.Lane{nil, lanes[1:2], {lanes[3], lanes[1]}, lanes[:3], lanes} {
		lost, err := b.Lost(t.Context(), some, 10)
		if err != nil || len(lost) != want {
			t.Errorf("in %v: %+v, %v", some, lost, err)
		}
		for _, l := range lost {
			if !slices.Contains(some, push.LaneOf(lanes, push.RecipientKey(b.TenantID, l.Of.Recipient))) {
				t.Errorf("in %v: %+v", some, l)
			}
		}
	}
}
