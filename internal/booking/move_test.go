package booking_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestDecider_Move: under one push per minute, anna has one at noon and one in an hour. The first one is moved.
func TestDecider_Move(t *testing.T) {
	const day = 24 * hour
	for _, row := range []struct {
		name    string
		status  push.Status // of the push; empty: scheduled
		foreign bool        // another tenant requests it
		dry     bool        // dry run
		usage   *booking.CapUsage
		to      time.Duration
		want    booking.Outcome
		err     error
		new     bool // it is the recipient's only push on the new day
	}{
		{name: "to a free time", to: 2 * hour, want: booking.Booked},
		{name: "to a free time, as a dry run", dry: true, to: 2 * hour, want: booking.Booked},
		{name: "to its own time", to: 0, want: booking.Booked},
		{name: "by less than a window, for its own booking does not count", to: 30 * time.Second, want: booking.Booked},
		{name: "to the time of another push", to: hour, want: booking.NoPlace},
		{name: "too close to another push", to: hour + 59*time.Second, want: booking.NoPlace},
		{name: "that is being sent", status: push.Sending, to: 2 * hour, err: push.ErrNotReschedulable},
		{name: "that has ended", status: push.Canceled, to: 2 * hour, err: push.ErrNotReschedulable},
		{name: "of another tenant", foreign: true, to: 2 * hour, err: push.ErrNotFound},

		{name: "to a day with room", usage: dayUsage(booking.DayOf(noon)+1, 2), to: day, want: booking.Booked, new: true},
		{name: "to a full day", usage: dayUsage(booking.DayOf(noon)+1, 3), to: day, want: booking.OverCap},
		{name: "to a day that was not counted", usage: dayUsage(booking.DayOf(noon), 0), to: day, want: booking.Uncounted},
		{name: "within a full day", usage: dayUsage(booking.DayOf(noon), 3), to: 2 * hour, want: booking.Booked},
		{name: "to a full time on a full day", usage: dayUsage(booking.DayOf(noon), 3), to: hour, want: booking.NoPlace},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			b.hold("anna", 0, hour)
			if row.status != "" {
				b.existing[0].Status = row.status
			}
			old, before := b.existing[0], b.bookings("anna")
			p := b.push("anna", row.to)
			p.ID = old.ID
			if row.foreign {
				p.Tenant = uuid.New()
			}
			decider := b.decider()
			d, err := decider.Move(booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: onePerMinute, DryRun: row.dry, CapUsage: row.usage})
			if !errors.Is(err, row.err) || err == nil && (d.Outcome != row.want || d.NewRecipientOfDay != row.new) {
				t.Fatalf("%+v, %v", d, err)
			}
			if row.dry || row.err != nil || row.want != booking.Booked {
				if len(decider.Granted) != 0 || !row.foreign && d.Push.ID != old.ID {
					t.Errorf("stores %d pushes, and returns %s", len(decider.Granted), d.Push.ID)
				}
				return
			}
			want := old
			want.SendAt, want.NextAt, want.RequestedSendAt, want.ExpiresAt = p.SendAt, p.SendAt, p.SendAt, p.SendAt.Add(old.TTL)
			want.Gen, want.UpdatedAt = 2, noon // wake-ups of the old plan are stale
			if diff := cmp.Diff(want, decider.Granted[0].Push); diff != "" {
				t.Error(diff)
			}
			if got := b.bookings("anna"); len(got) != len(before) {
				t.Errorf("bookings %v became %v", before, got)
			}
		})
	}
}

// dayUsage returns a cap of three recipients per day with the given usage on one day.
func dayUsage(day booking.Day, used int) *booking.CapUsage {
	return &booking.CapUsage{Caps: push.Caps{RecipientsPerDay: 3}, Days: map[booking.Day]int{day: used}}
}
