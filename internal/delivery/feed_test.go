package delivery

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// A queue is read on behind the first page of each kind: pushes that are not bulk come to their end before the bulk does.
// A nearly empty queue is fed from the beginning, a full one not at all.
func TestChannelQueue_Feed(t *testing.T) {
	t.Parallel()
	lane, now := push.Lanes(1)[0], time.Now()
	q := newChannelQueue(channel.Entry{Name: "sms", Speed: pace.PerSpan(1, time.Second, 1), Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
	if behind, hungry := q.hungry(lane, now); !hungry || behind != (booking.Due{}) {
		t.Fatalf("an empty queue: %v, from %+v", hungry, behind)
	}
	var page []booking.Due
	for i := range 2 * feedPage {
		page = append(page, booking.Due{RecipientKey: int64(i), At: now, Bulk: i >= feedPage})
	}
	q.feed(lane, page)
	if _, hungry := q.hungry(lane, now); hungry {
		t.Error("it is fed again at once")
	}
	if behind, hungry := q.hungry(lane, now.Add(2*feedPause)); !hungry || behind != page[feedPage-1] {
		t.Errorf("fed later: %v, behind %+v, want behind the last that is not bulk", hungry, behind)
	}
	q.feed(lane, page[:feedPage-1])
	if behind, _ := q.hungry(lane, now.Add(2*feedPause)); behind != (booking.Due{}) {
		t.Errorf("after the end it goes on behind %+v", behind)
	}
	q.limit = q.len()
	if _, hungry := q.hungry(lane, now.Add(2*feedPause)); hungry {
		t.Error("a full queue is fed")
	}
}
