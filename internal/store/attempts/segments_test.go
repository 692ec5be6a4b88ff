package attempts_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// sentSegments returns the segments in a tenant's statistics of this day, before and after they are folded.
func sentSegments(t *testing.T, b *bundle, tenant uuid.UUID) (n int64) {
	t.Helper()
	now := time.Now().UTC().Truncate(time.Hour)
	report, err := b.Stats(t.Context(), tenant, stats.Query{By: stats.ByChannel, From: now.Add(-48 * time.Hour), Until: now.Add(48 * time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range report.Groups {
		n += g.Segments
	}
	return n
}

// TestFinish_Segments checks that each attempt keeps the segments of its text, and that those of delivered texts are counted.
func TestFinish_Segments(t *testing.T) {
	t.Parallel()
	b := setup(t)
	finish := func(f booking.Finish, segments int) booking.Finish {
		f.Segments = segments
		return f
	}
	p := b.Booked(t, "anna", 0)
	b.MustFinish(t, b.Claimed(t, p), finish(storetest.TryAgain, 2))
	b.MustFinish(t, b.Claimed(t, p), finish(storetest.Sent, 3))
	sends := b.MustRead(t, p).Sends
	if len(sends) != 2 || sends[0].Segments != 2 || sends[1].Segments != 3 {
		t.Errorf("%+v", sends)
	}
	b.MustFinish(t, b.Claimed(t, b.Booked(t, "bert", 0)), finish(storetest.GaveUp, 5))
	b.MustFinish(t, b.Claimed(t, b.Booked(t, "carl", 0)), storetest.Sent) // no text message
	if n := sentSegments(t, b, b.TenantID); n != 3 {
		t.Errorf("%d segments were sent, want 3", n)
	}
	if _, err := b.FoldStatDeltas(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := sentSegments(t, b, b.TenantID); n != 3 {
		t.Errorf("after the fold, %d segments were sent, want 3", n)
	}
}

// TestFinish_SegmentsLate checks that the segments of an attempt that was lost, and delivered after all, are counted once:
// those of the text that was delivered.
func TestFinish_SegmentsLate(t *testing.T) {
	t.Parallel()
	delivered := storetest.Sent
	delivered.Segments = 4
	for name, after := range map[string]func(b *bundle, c booking.Claim){
		"while the push waits": func(b *bundle, c booking.Claim) { b.MustFinish(t, c, delivered) },
	} {
		t.Run(name, func(t *testing.T) {
			b := setupAlone(t)
			p, c := b.reaped(t, "anna", push.Scheduled)
			after(b, c)
			got := b.MustRead(t, p)
			if n := sentSegments(t, b, b.TenantID); n != 4 || got.Status != push.Sent || got.Sends[0].Segments != 4 {
				t.Errorf("%d segments; %+v", n, got)
			}
		})
	}
	b := setupAlone(t)
	p, first := b.reaped(t, "anna", push.Scheduled)
	second := b.Claimed(t, p)
	b.MustFinish(t, first, delivered)
	refused := storetest.TryAgain
	refused.Segments = 1
	b.MustFinish(t, second, refused)
	if n := sentSegments(t, b, b.TenantID); n != 4 || b.MustRead(t, p).Status != push.Sent {
		t.Errorf("%d segments were counted beside the next attempt, want 4", n)
	}
}
