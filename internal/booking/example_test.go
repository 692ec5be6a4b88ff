package booking_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Three pushes for one recipient at the same time, under one per minute. The second is
// refused. The third may be up to an hour late.
func ExampleDecider_Book() {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	decider := booking.NewDecider(booking.Snapshot{Now: noon, Views: views{}})
	newPush := func() push.Push {
		return push.Push{Content: push.Content{Recipient: "anna"}, ID: uuid.New(), SendAt: noon}
	}

	decisions := decider.Book(booking.Order{
		Policy: quota.Policy{{Name: "per-minute", Limit: 1, Window: time.Minute}},
		Drafts: []booking.Draft{{Push: newPush()}, {Push: newPush()}, {Push: newPush(), Latest: noon.Add(time.Hour)}},
	})
	for _, d := range decisions {
		switch d.Outcome {
		case booking.Booked:
			fmt.Println("booked at", d.Push.SendAt.Format(time.TimeOnly))
		case booking.NoPlace:
			fmt.Println("refused by", d.Quota.Violations[0].Rule.Name+", free at", d.Quota.Next.Format(time.TimeOnly))
		}
	}
	fmt.Println("to be stored:", len(decider.Granted))
	// Output:
	// booked at 12:00:00
	// refused by per-minute, free at 12:01:00
	// booked at 12:01:00
	// to be stored: 2
}

// A push is due. Another one was sent to the same recipient 40 seconds ago, and one per
// minute is allowed: the push is put off until a minute has passed.
func ExampleClaimState_Decide() {
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	state := booking.ClaimState{
		Due:   push.Push{Content: push.Content{Recipient: "anna"}, ID: uuid.New(), NextAt: noon, ExpiresAt: noon.Add(time.Hour)},
		Sends: []quota.Booking{{At: noon.Add(-40 * time.Second)}},
	}
	c := state.Decide(booking.ClaimOrder{Policy: quota.Policy{{Name: "per-minute", Limit: 1, Window: time.Minute}}, Lease: time.Minute}, noon)
	fmt.Println(c.Outcome == booking.PutOff, c.Push.NextAt.Format(time.TimeOnly))
	// Output: true 12:00:20
}
