package quota_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// TestFill covers every update between a read of Postgres and the Fill with its result. The result may be outdated
// then: the update takes precedence, for every caller and order.
func TestFill(t *testing.T) {
	t.Parallel()
	me, other := booking(1, noon), booking(2, noon.Add(time.Hour))
	moved := quota.Booking{ID: me.ID, At: noon.Add(2 * time.Hour)}
	type scene struct {
		l    *quota.Cache
		rdb  redisclient.Client
		anna quota.Recipient
	}
	for _, row := range []struct {
		name   string
		events func(scene)
		loaded bool
		holds  []quota.Booking
	}{
		{"nothing happens", func(scene) {}, true, []quota.Booking{me}},
		{"it is released", func(s scene) { s.l.Release(s.anna, me) }, true, nil},
		{"it is dropped", func(s scene) { s.l.Drop(s.anna, me) }, true, nil},
		{"it is moved", func(s scene) { s.l.Hold(s.anna, moved) }, true, []quota.Booking{moved}},
		{"it is moved and released", func(s scene) { s.l.Hold(s.anna, moved); s.l.Release(s.anna, me) }, true, nil},
		{"another is released", func(s scene) { s.l.Release(s.anna, other) }, true, []quota.Booking{me}},
		{"another is moved", func(s scene) { s.l.Hold(s.anna, other) }, true, []quota.Booking{me, other}},
		{"one booking is added, which is not all", func(s scene) { s.l.Add(s.anna, other) }, true, []quota.Booking{me}},
		{"all is forgotten", func(s scene) { s.l.Forget(s.anna) }, true, []quota.Booking{me}},
		{"there are too many", func(s scene) { s.l.Skip(s.anna) }, false, nil},
		{"there are too many, and one is moved", func(s scene) { s.l.Skip(s.anna); flush(t, s.l); s.l.Hold(s.anna, me) }, false, nil},
		{"another asks", func(s scene) { s.l.Reserve(s.anna, other, nil) }, true, []quota.Booking{me}},
		{"another fills", func(s scene) { s.l.Fill(s.anna, []quota.Booking{other}, false) }, true, []quota.Booking{me, other}},
		{"another fills, and books", func(s scene) {
			s.l.Fill(s.anna, nil, false)
			flush(t, s.l)
			s.l.Reserve(s.anna, other, nil)
		}, true, []quota.Booking{me, other}},
		{"another fills, and adds", func(s scene) {
			s.l.Fill(s.anna, nil, false)
			s.l.Add(s.anna, other)
		}, true, []quota.Booking{me, other}},
		{"another fills, and both are released", func(s scene) {
			s.l.Fill(s.anna, []quota.Booking{me, other}, false)
			flush(t, s.l)
			s.l.Release(s.anna, other)
			s.l.Release(s.anna, me)
		}, true, nil},
		{"another fills, and it is moved", func(s scene) {
			s.l.Fill(s.anna, []quota.Booking{me}, false)
			flush(t, s.l)
			s.l.Hold(s.anna, moved)
		}, true, []quota.Booking{moved}},
		{"it has filled already, and is added", func(s scene) {
			s.l.Fill(s.anna, []quota.Booking{me}, false)
			s.l.Add(s.anna, me)
		}, true, []quota.Booking{me}},
		{"another recipient's events", func(s scene) {
			bert := quota.Recipient{Tenant: s.anna.Tenant, ID: "bert"}
			s.l.Hold(bert, moved)
			s.l.Release(bert, me)
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
			flush(t, l)
			l.Fill(s.anna, []quota.Booking{me}, false)
			flush(t, l)

			ids, ok := loaded(t, rdb)
			var want []string
			for _, b := range row.holds {
				want = append(want, b.ID.String())
			}
			if ok != row.loaded || !slices.Equal(ids, want) {
				t.Errorf("loaded %v with %v, want %v with %v", ok, ids, row.loaded, want)
			}
			for _, b := range row.holds {
				if at := rdb.ZScore(t.Context(), rdb.Keys(t.Context(), "*").Val()[0], b.ID.String()).Val(); at != float64(b.At.UnixMilli()) {
					t.Errorf("%s is at %.0f, want %d", b.ID, at, b.At.UnixMilli())
				}
			}
		})
	}
}

// TestAdd_ColdCache checks that one added booking does not load a recipient, and that a change is kept only for callers
// that fill.
func TestAdd_ColdCache(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	anna := anybody()
	l.Add(anna, booking(1, noon))
	flush(t, l)
	if n := rdb.DBSize(t.Context()).Val(); n != 0 {
		t.Errorf("%d keys", n)
	}
	l.Hold(anna, booking(1, noon))
	l.Release(anna, booking(2, noon))
	if res := l.Reserve(anna, booking(3, noon), per(1, time.Minute)); res.State != quota.Cold || !res.Fill {
		t.Errorf("%+v", res)
	}
}

// TestLater_Bound checks that while Redis is busy, a bounded number of updates waits and the rest is dropped.
func TestLater_Bound(t *testing.T) {
	t.Parallel()
	l, rdb := newCache(t)
	const recipients = 100_000
	anna := anybody()
	load(t, l, anna, booking(1, noon))
	for n := range recipients {
		l.Add(anna, quota.Booking{ID: uuid.New(), At: noon.Add(time.Duration(n) * time.Hour)})
	}
	flush(t, l)
	ids, _ := loaded(t, rdb)
	if len(ids) < 1000 || len(ids) > recipients/2 {
		t.Errorf("%d of %d bookings arrived", len(ids), recipients)
	}
}
