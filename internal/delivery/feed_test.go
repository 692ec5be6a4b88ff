package delivery

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// A queue is fed page by page, after the first page of each kind: pushes that are no burst end before the burst does. A
// nearly empty queue is fed from the beginning, a full one not at all.
func TestChannelQueue_Feed(t *testing.T) {
	t.Parallel()
	lane, now := fedFrom{push.Lanes(1)[0], push.Normal}, time.Now()
	q := newChannelQueue(channel.Entry{Name: "sms", Speed: pace.PerSpan(1, time.Second, 1), Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
	if behind, hungry := q.hungry(lane, now); !hungry || behind != (booking.Due{}) {
		t.Fatalf("an empty queue: %v, from %+v", hungry, behind)
	}
	var page []booking.Due
	for i := range 2 * feedPage {
		page = append(page, booking.Due{RecipientKey: int64(i), At: now, Rank: push.RankOf(push.Normal, i >= feedPage)})
	}
	q.feed(lane, page, feedPage)
	if _, hungry := q.hungry(lane, now); hungry {
		t.Error("it is fed again at once")
	}
	if behind, hungry := q.hungry(lane, now.Add(2*feedPause)); !hungry || behind != page[feedPage-1] {
		t.Errorf("fed later: %v, behind %+v, want behind the last that is no burst", hungry, behind)
	}
	q.feed(lane, page[:feedPage-1], feedPage)
	if behind, _ := q.hungry(lane, now.Add(2*feedPause)); behind != (booking.Due{}) {
		t.Errorf("after the end it goes on behind %+v", behind)
	}
	q.limit = q.len()
	if _, hungry := q.hungry(lane, now.Add(2*feedPause)); hungry {
		t.Error("a full queue is fed")
	}
}

// TestChannelQueue_FeedRarely: while nothing is due, and while all that is read is dropped, the lane is read less
// often, until that changes.
func TestChannelQueue_FeedRarely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lane := fedFrom{push.Lanes(1)[0], push.Normal}
		q := newChannelQueue(channel.Entry{Name: "sms", Speed: pace.PerSpan(1, time.Second, 1), Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
		page := func(first int64, tenant uuid.UUID) (due []booking.Due) {
			for i := range int64(feedPage) {
				due = append(due, booking.Due{RecipientKey: first + i, Tenant: tenant, Rank: push.RankOf(push.Normal, false)})
			}
			return due
		}
		q.limit = 2 * feedPage
		mine, theirs := uuid.New(), uuid.New()
		for _, row := range []struct {
			read []booking.Due
			next time.Duration
		}{
			{nil, feedPause},
			{nil, feedPause},
			{page(0, mine)[:1], 0}, // and the queue has this one only
			{page(0, mine), feedPause},
			{page(0, mine), feedPause}, // they are there already
			{page(feedPage, mine), 2 * feedPause},
			{page(2*feedPage, mine), 4 * feedPause},
			{page(3*feedPage, mine), longestFeedPause},
			{page(4*feedPage, theirs)[:1], feedPause},
			{page(5*feedPage, mine), 2 * feedPause},
		} {
			if _, hungry := q.hungry(lane, time.Now()); !hungry {
				t.Fatal("it is not read in time")
			}
			q.feed(lane, row.read, feedPage)
			if _, hungry := q.hungry(lane, time.Now().Add(row.next-1)); hungry != (row.next == 0) {
				t.Errorf("after %d rows: it is read within %s: %v", len(row.read), row.next, hungry)
			}
			time.Sleep(row.next)
		}
	})
}

// asked counts the queries for due pushes.
type asked struct {
	attempts
	times int
}

func (a *asked) Due(context.Context, booking.DueOrder) (due []booking.Due, now time.Time, err error) {
	a.times++
	return nil, now, nil
}

// TestWorker_FeedsWhatIsDue: the lanes are read only if pushes may be due in them.
func TestWorker_FeedsWhatIsDue(t *testing.T) {
	t.Parallel()
	e := channel.Entry{Name: "sms", Channel: struct{ channel.Channel }{}, Speed: pace.PerSpan(1, time.Second, 1), Retry: push.Retry{MaxAttempts: 1, First: time.Second, Max: time.Second}}
	channels, err := channel.NewSet(e)
	if err != nil {
		t.Fatal(err)
	}
	st, due := &asked{}, false
	w := New(st, nil, channels, nil, slog.New(slog.DiscardHandler), nil, Config{
		Concurrency: 10, Pacer: pace.New(nil, nil, "", nil), Lanes: func() []push.Lane { return push.Lanes(2) }, Due: func() bool { return due },
	})
	for _, want := range []int{0, 2} {
		if _, err := w.feed(t.Context()); err != nil || st.times != want {
			t.Errorf("due: %v: asked %d times, want %d; %v", due, st.times, want, err)
		}
		due = true
	}
}
