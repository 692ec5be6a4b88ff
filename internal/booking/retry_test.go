package booking_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestDecider_Retry checks that each retry of a push affects the next ones, unless it is taken back.
func TestDecider_Retry(t *testing.T) {
	b := setup(t)
	first := b.push("anna", 0)
	first.Status = push.Failed
	b.existing = append(b.existing, first)
	retry := func() booking.Draft {
		p := b.push("anna", hour)
		p.Retry.Of, p.Retry.First = first.ID, first.ID
		return booking.Draft{Push: p, Latest: noon.Add(24 * hour), Retried: new(uuid.UUID)}
	}
	decider := b.decider()
	for _, row := range []struct {
		name string
		dry  bool
		want []booking.Outcome
	}{
		{"asked", true, []booking.Outcome{booking.Booked, booking.Retried}},
		{"booked", false, []booking.Outcome{booking.Booked, booking.Retried}},
		{"booked again", false, []booking.Outcome{booking.Retried, booking.Retried}},
	} {
		decisions := decider.Book(booking.Order{Drafts: []booking.Draft{retry(), retry()}, Policy: onePerMinute, DryRun: row.dry})
		for i, d := range decisions {
			if d.Outcome != row.want[i] {
				t.Errorf("%s: retry %d is %d, want %d", row.name, i, d.Outcome, row.want[i])
			}
		}
	}
	if len(decider.Granted) != 1 || decider.Granted[0].First.ID != first.ID {
		t.Errorf("granted %+v", decider.Granted)
	}
}
