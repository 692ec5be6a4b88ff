package upkeep

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// due is a store whose pushes became due and expire at set times. It records the calls.
type due struct {
	now     time.Time
	expires map[time.Time]time.Time // by when the push became due
	asked   []string
}

func (d *due) NextExpiry(_ context.Context, _ []push.Lane, since time.Time) (next, now time.Time, err error) {
	d.asked = append(d.asked, "all")
	if !since.IsZero() {
		d.asked[len(d.asked)-1] = d.now.Sub(since).String()
	}
	for at, expires := range d.expires {
		if at.After(since) && !at.After(d.now) && (next.IsZero() || expires.Before(next)) {
			next = expires
		}
	}
	return next, d.now, nil
}

func (d *due) Expire(context.Context, []push.Lane, int) (ended []booking.Ended, err error) {
	d.asked = append(d.asked, "expire")
	for at, expires := range d.expires {
		if !expires.After(d.now) {
			delete(d.expires, at)
			ended = append(ended, booking.Ended{})
		}
	}
	return ended, nil
}

// TestExpirer_ReadsNew: pushes that were read are read again when the first of them expires, and now and then. In
// between, only newly due pushes are read.
func TestExpirer_ReadsNew(t *testing.T) {
	start := time.Now()
	at := func(s int) time.Time { return start.Add(time.Duration(s) * time.Second) }
	d := &due{expires: map[time.Time]time.Time{at(-100): at(3), at(-3000): at(800), at(9): at(10), at(900): at(901)}}
	e := expirer{store: d}
	one, two := push.Lanes(2)[:1], push.Lanes(2)
	for _, row := range []struct {
		at    int
		lanes []push.Lane
		ended int
		asked []string
	}{
		{0, one, 0, []string{"all"}},
		{1, one, 0, []string{"1m16s"}},
		{2, two, 0, []string{"all"}},
		{3, two, 1, []string{"1m16s", "expire"}},
		{4, two, 0, []string{"expire", "all"}},
		{5, two, 0, []string{"1m16s"}},
		{10, two, 1, []string{"1m20s", "expire"}},
		{11, two, 0, []string{"expire", "all"}},
		{610, two, 0, []string{"11m14s"}},
		{611, two, 0, []string{"1m16s"}},
		{612, two, 0, []string{"all"}},
		{800, two, 1, []string{"4m23s", "expire"}},
		{801, two, 0, []string{"expire", "all"}},
		{901, two, 1, []string{"2m55s", "expire"}},
	} {
		d.now, d.asked = at(row.at), nil
		ended, err := e.search(t.Context(), row.lanes)
		if err != nil || len(ended) != row.ended || !slices.Equal(d.asked, row.asked) {
			t.Errorf("at %d s: %d ended, %v, asked %q, want %+v", row.at, len(ended), err, d.asked, row)
		}
	}
}
