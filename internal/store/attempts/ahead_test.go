package attempts_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// moments counts the times within a span, by the tenth of a second, rounded up.
func moments(due []time.Time, from, until time.Time) []push.Moment {
	n := map[time.Time]int{}
	for _, at := range due {
		if !at.Before(from) && at.Before(until) {
			n[at.Add(100*time.Millisecond-time.Microsecond).Truncate(100*time.Millisecond)]++
		}
	}
	var all []push.Moment
	for _, at := range slices.SortedFunc(maps.Keys(n), time.Time.Compare) {
		all = append(all, push.Moment{At: at, Pushes: n[at]})
	}
	return all
}

// plan moves the scheduled pushes to times after now, some of them whole tenths of a second, and returns these times.
func (b *bundle) plan(t testing.TB, where string, from, to time.Duration) (at []time.Time) {
	t.Helper()
	where = `status = 'scheduled' AND EXISTS (SELECT FROM live WHERE push_id = id AND token IS NULL) AND ` + where
	b.Exec(t, `UPDATE pushes SET next_at = date_trunc('second', clock_timestamp()) + $1::interval
		+ random() * ($2::interval - $1::interval) WHERE `+where, from, to)
	b.Exec(t, `UPDATE pushes SET next_at = date_bin('0.1 seconds', next_at, '2000-01-01Z') WHERE recipient_key % 3 = 0 AND `+where)
	rows, _ := b.DB.Query(t.Context(), `SELECT next_at FROM pushes WHERE `+where)
	for rows.Next() {
		var next time.Time
		if err := rows.Scan(&next); err != nil {
			t.Fatal(err)
		}
		at = append(at, next.UTC())
	}
	return at
}

// TestAhead_Moments compares Ahead with a count in Go of the waiting pushes of a lane, for configured channels and of
// both kinds.
func TestAhead_Moments(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for _, channel := range []string{"log", "sms", "fax"} {
		b.Forge(t, 150, channel, false, 0)
		b.Forge(t, 150, channel, true, 0)
	}
	b.InStatus(t, "anna", push.Sending)
	b.InStatus(t, "bert", push.Canceled)
	b.plan(t, `true`, 30*time.Minute, 31*time.Minute)
	const mine = `channel <> 'fax' AND (recipient_key & 255) BETWEEN 64 AND 127`
	due := b.plan(t, mine, 30*time.Minute, 30*time.Minute+10*time.Second)
	if len(due) < 100 {
		t.Fatalf("%d pushes", len(due))
	}
	b.Store = storetest.OpenURL(t, b.URL, pg.Config{Channels: []string{"sms", "log", "mail"}})
	slices.SortFunc(due, time.Time.Compare)
	for _, from := range []time.Time{{}, due[0], due[50].Add(time.Microsecond), due[len(due)-1], due[len(due)-1].Add(time.Microsecond)} {
		a := b.MustAhead(t, push.Lane{First: 64, Last: 127}, from, time.Hour)
		if diff := cmp.Diff(moments(due, from, a.Until), a.Moments); diff != "" || len(a.Oldest) > 0 {
			t.Errorf("from %s: %s; due since %s", from, diff, a.Oldest)
		}
	}
	b.Store = storetest.OpenURL(t, b.URL, store.Config{})
	n := 0
	for _, lane := range push.Lanes(8) {
		for _, m := range b.MustAhead(t, lane, time.Time{}, time.Hour).Moments {
			n += m.Pushes
		}
	}
	if n != 900 {
		t.Errorf("for all channels %d, want 900", n)
	}
}

// TestAhead_Oldest checks that Ahead does not count pushes that are due already, and that it returns the send time of
// the oldest due push in the lane for each configured channel.
func TestAhead_Oldest(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 1, "fax", false, 3*time.Hour)
	b.Forge(t, 1, "log", true, 2*time.Hour)
	b.Exec(t, `UPDATE pushes SET recipient_key = 100`)
	b.Forge(t, 1, "log", false, time.Hour)
	b.Forge(t, 1, "log", false, -time.Hour)
	b.Exec(t, `UPDATE pushes SET recipient_key = 200 WHERE recipient_key <> 100`)
	b.Store = storetest.OpenURL(t, b.URL, pg.Config{Channels: []string{"log"}})
	for _, row := range []struct {
		lane   push.Lane
		ago    time.Duration
		pushes int
	}{{push.Lane{First: 0, Last: 127}, 2 * time.Hour, 0}, {push.Lane{First: 128, Last: 255}, time.Hour, 1}, {push.Lane{First: 0, Last: 255}, 2 * time.Hour, 1}, {push.Lane{First: 101, Last: 199}, 0, 0}} {
		a := b.MustAhead(t, row.lane, storetest.Began.Add(-24*time.Hour), 2*time.Hour)
		oldest, isDue := a.Oldest["log"]
		if ago := a.Now.Sub(oldest); isDue != (row.ago > 0) || len(a.Oldest) > 1 || row.ago > 0 && (ago < row.ago || ago > row.ago+30*time.Minute) || len(a.Moments) != row.pushes {
			t.Errorf("lane %s: %+v", row.lane, a)
		}
	}
}

// TestAhead_CountedOnce checks that calls that each begin where the last one ended count every push once, wherever they
// end, if none of them comes too late.
func TestAhead_CountedOnce(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 1000, "log", false, 0)
	due := b.plan(t, `true`, time.Hour, time.Hour+20*time.Second)
	slices.SortFunc(due, time.Time.Compare)
	var (
		from    time.Time
		horizon = 59 * time.Minute
		n       int
	)
	for !from.After(due[len(due)-1]) {
		a := b.MustAhead(t, push.Lanes(1)[0], from, horizon)
		for _, m := range a.Moments {
			n += m.Pushes
		}
		from, horizon = a.Until, horizon+time.Duration(rand.N(5000))*time.Millisecond
	}
	if n != 1000 {
		t.Errorf("%d were counted, want 1000", n)
	}
}

// TestAhead_AllLanes checks that one call for several lanes, each with its own end of the last count, returns the same
// as a call for each lane.
func TestAhead_AllLanes(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 500, "log", false, 0)
	b.Forge(t, 500, "sms", true, 0)
	b.plan(t, `recipient_key % 6 <> 0`, 30*time.Minute, 31*time.Minute)
	b.plan(t, `recipient_key % 6 = 0`, -20*time.Second, -time.Second)
	var counted []push.CountedLane
	for i, lane := range push.Lanes(8) {
		if i == 3 {
			continue // belongs to another worker
		}
		l := push.CountedLane{Lane: lane}
		if i > 0 {
			l.Until = time.Now().Add(30*time.Minute + time.Duration(rand.N(40_000))*time.Millisecond)
		}
		counted = append(counted, l)
	}
	all, err := b.Ahead(t.Context(), counted, time.Hour)
	if err != nil || len(all) != len(counted) {
		t.Fatal(len(all), err)
	}
	moments := 0
	for i, l := range counted {
		alone := b.MustAhead(t, l.Lane, l.Until, time.Hour)
		if diff := cmp.Diff(alone.Moments, all[i].Moments) + cmp.Diff(alone.Oldest, all[i].Oldest); diff != "" || len(alone.Oldest) != 2 {
			t.Errorf("lane %s, counted until %s: %s", l, l.Until, diff)
		}
		moments += len(all[i].Moments)
	}
	if moments < 100 {
		t.Errorf("%d moments", moments)
	}
}
