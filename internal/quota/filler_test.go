package quota_test

import (
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestFill goes through what can happen between a cold answer and the filling
// with what Postgres said meanwhile. Only a filler whom nothing overtook may
// fill: what it read may be out of date.
func TestFill(t *testing.T) {
	t.Parallel()
	me, other := booking(1, noon), booking(2, noon.Add(time.Hour))
	type scene struct {
		l    *quota.Cache
		rdb  *redis.Client
		anna quota.Recipient
	}
	for _, row := range []struct {
		name   string
		events func(scene)
		loaded bool
		holds  []quota.Booking
	}{
		{"nothing happens", func(scene) {}, true, []quota.Booking{me}},
		{"a booking that is not there is released", func(s scene) { s.l.Release(s.anna, other.ID) }, false, nil},
		{"a booking is held", func(s scene) { s.l.Hold(s.anna, other) }, false, nil},
		{"all is forgotten", func(s scene) { s.l.Forget(s.anna) }, false, nil},
		{"the turn is over", func(s scene) { s.rdb.Del(t.Context(), s.rdb.Keys(t.Context(), "*:filler").Val()...) }, false, nil},
		{"another asks, and is the filler now", func(s scene) { s.l.Reserve(s.anna, other, nil) }, false, nil},
		{"another asks and fills", func(s scene) {
			s.l.Reserve(s.anna, other, nil)
			s.l.Fill(s.anna, other.ID, []quota.Booking{other})
		}, true, []quota.Booking{other}},
		{"another asks, fills and is released", func(s scene) {
			s.l.Reserve(s.anna, other, nil)
			s.l.Fill(s.anna, other.ID, []quota.Booking{other})
			s.l.Release(s.anna, other.ID)
		}, true, nil},
		{"the same asks again", func(s scene) { s.l.Reserve(s.anna, me, nil) }, true, []quota.Booking{me}},
		{"it has filled already, and a booking was held", func(s scene) {
			s.l.Fill(s.anna, me.ID, []quota.Booking{me})
			s.l.Hold(s.anna, other)
		}, true, []quota.Booking{me, other}},
		{"somebody else's events", func(s scene) {
			bert := quota.Recipient{Tenant: s.anna.Tenant, ID: "bert"}
			s.l.Hold(bert, other)
			s.l.Release(bert, other.ID)
			s.l.Forget(bert)
		}, true, []quota.Booking{me}},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l, rdb := newCache(t)
			s := scene{l: l, rdb: rdb, anna: anybody()}
			if res := l.Reserve(s.anna, me, per(1, time.Minute)); !res.Fill {
				t.Fatalf("%+v", res)
			}
			row.events(s)
			l.Fill(s.anna, me.ID, []quota.Booking{me})

			ids, ok := loaded(t, rdb)
			var want []string
			for _, b := range row.holds {
				want = append(want, b.ID.String())
			}
			if ok != row.loaded || !slices.Equal(ids, want) {
				t.Errorf("loaded %v with %v, want %v with %v", ok, ids, row.loaded, want)
			}
		})
	}
}

// TestHold_ColdCache: one booking is not all of them.
func TestHold_ColdCache(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	l.Hold(anybody(), booking(1, noon))
	l.Hold(anybody(), booking(2, noon))
	l.Release(anybody(), booking(1, noon).ID)
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
}
