package delivery

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
)

// However many pushes of one tenant are due earlier, a push of another tenant waits for at most one of them.
func TestFairQueue_TenantsTakeTurns(t *testing.T) {
	var (
		q            fairQueue
		flood, other = uuid.New(), uuid.New()
		began        = time.Now()
	)
	for i := range 1000 {
		q.push(booking.Due{Tenant: flood, RecipientKey: int64(i), At: began.Add(time.Duration(1000-i) * time.Millisecond)})
	}
	q.push(booking.Due{Tenant: other, RecipientKey: 2000, At: began.Add(time.Hour)})
	q.push(booking.Due{Tenant: other, RecipientKey: 2001, At: began.Add(time.Minute)})
	var got []int64
	for range 4 {
		got = append(got, popAny(&q, false).RecipientKey)
	}
	if !slices.Equal(got, []int64{999, 2001, 998, 2000}) {
		t.Errorf("popped %v", got)
	}
	if q.len() != 998 || q.of(flood) != 998 || q.of(other) != 0 {
		t.Errorf("%d wait, %d and %d", q.len(), q.of(flood), q.of(other))
	}
}

// No recipient is lost, in whatever order they come and go.
func TestFairQueue_LosesNothing(t *testing.T) {
	tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	rapid.Check(t, func(t *rapid.T) {
		var q fairQueue
		held, n := map[int64]bool{}, int64(0)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			if q.len() == 0 || rapid.Bool().Draw(t, "push") {
				n++
				held[n] = true
				q.push(booking.Due{Tenant: tenants[rapid.IntRange(0, 2).Draw(t, "tenant")], RecipientKey: n})
				continue
			}
			w := popAny(&q, rapid.Bool().Draw(t, "any"))
			if !held[w.RecipientKey] {
				t.Fatalf("%d comes again", w.RecipientKey)
			}
			delete(held, w.RecipientKey)
		}
		if left := q.len(); left != len(held) || len(q.tenants) != q.order.Len() {
			t.Fatalf("%d are left of %d", left, len(held))
		}
		for q.len() > 0 {
			if d := popAny(&q, false); !held[d.RecipientKey] {
				t.Fatalf("%d comes again", d.RecipientKey)
			}
		}
	})
}

// popAny takes the next recipient of whatever tenant.
func popAny(q *fairQueue, anyOf bool) booking.Due {
	d, _ := q.pop(func(uuid.UUID) bool { return true }, anyOf, func(uuid.UUID) bool { return false })
	return d
}
