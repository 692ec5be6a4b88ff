package quota_test

import (
	"encoding/binary"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// crowd returns n bookings at equal distances, starting at noon.
func crowd(n int, every time.Duration) []quota.Booking {
	bookings := make([]quota.Booking, n)
	for i := range bookings {
		bookings[i].At = noon.Add(time.Duration(i) * every)
		binary.BigEndian.PutUint32(bookings[i].ID[12:], uint32(i+1))
	}
	return bookings
}

// TestConflicts_NearestOnly checks that of a thousand conflicts the nearest ones are returned and the others counted.
func TestConflicts_NearestOnly(t *testing.T) {
	t.Parallel()
	bookings := crowd(1000, time.Second)
	at := noon.Add(300*time.Second + 500*time.Millisecond)
	violations := per(1000, time.Hour).Violations(quota.NewTimeline(bookings), at)
	if len(violations) != 1 {
		t.Fatalf("violations: %v", violations)
	}
	v := violations[0]
	if first := slices.Index(ids(bookings), v.Conflicts[0].ID); first != 251 || len(v.Conflicts) != quota.MaxConflicts || v.Omitted != 900 {
		t.Errorf("%d conflicts from number %d on, %d omitted", len(v.Conflicts), first, v.Omitted)
	}
	if !slices.IsSortedFunc(v.Conflicts, earlierFirst) {
		t.Error("they are not sorted by time")
	}
}

func ids(bookings []quota.Booking) []uuid.UUID {
	all := make([]uuid.UUID, len(bookings))
	for i, b := range bookings {
		all[i] = b.ID
	}
	return all
}

// BenchmarkCrowd decides about one more push of a recipient with 100,000 bookings, two windows full, under a rule that
// is just not full.
func BenchmarkCrowd(b *testing.B) {
	p := quota.Policy{{Name: "per-day", Limit: 50_001, Window: 24 * time.Hour}, {Name: "per-hour", Limit: 10_000, Window: time.Hour}}
	line := quota.NewTimeline(crowd(100_000, 2*24*time.Hour/100_000))
	at := noon.Add(24 * time.Hour)
	b.Run("allows and usage", func(b *testing.B) {
		for b.Loop() {
			if !p.Allows(line, at) || p.Usage(line, at)[0].Used == 0 {
				b.Fatal("refused")
			}
		}
	})
	p[0].Limit = 50_000
	b.Run("violations and free times", func(b *testing.B) {
		for b.Loop() {
			if d, _ := p.Decide(quota.View{Timeline: line}, at, noon.AddDate(-1, 0, 0)); d.Allowed() || d.Next.IsZero() || d.Previous.IsZero() {
				b.Fatalf("%+v", d)
			}
		}
	})
}
