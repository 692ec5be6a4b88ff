package attempts_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestClaim_NotDue checks that a claim neither takes nor changes a push that is not due, and that it waits for a push
// that is due in a moment.
func TestClaim_NotDue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		in   time.Duration
		want booking.ClaimOutcome
		till time.Duration // after that, the outcome would differ
	}{
		"far ahead":            {time.Hour, booking.Nothing, time.Hour - booking.MaxWait},
		"just beyond patience": {5 * time.Second, booking.Nothing, 5*time.Second - booking.MaxWait},
		"soon":                 {1500 * time.Millisecond, booking.Wait, 1500 * time.Millisecond},
		"due":                  {0, booking.Claimed, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var (
				b *bundle
				p push.Push
				c booking.Claim
			)
			for try := 1; ; try++ {
				b = setup(t)
				p = b.Booked(t, "anna", -time.Minute)
				forged := time.Now()
				b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() + $1::interval WHERE id = $2`, row.in, p.ID)
				if c = b.MustClaim(t, "anna", storetest.ThreeRules); c.Outcome == row.want {
					break
				}
				if time.Since(forged) < row.till || try == 50 { // otherwise the machine was too slow
					t.Fatalf("%+v", c)
				}
			}
			if c.Outcome == booking.Wait && (c.Wait <= 0 || c.Wait > 1500*time.Millisecond) {
				t.Errorf("asks to wait for %s", c.Wait)
			}
			if after := b.MustRead(t, p); row.want != booking.Claimed && (after.Status != push.Scheduled || after.Gen != p.Gen) {
				t.Errorf("it was changed: %+v", after)
			}
		})
	}
}

// TestClaim_OldestFirst checks that claims take the oldest due push first, whatever the order of the bookings and
// Postgres' plan.
func TestClaim_OldestFirst(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"by any plan":       nil,
		"by bitmap":         {`SET enable_indexscan = off`},
		"by the whole heap": {`SET enable_indexscan = off`, `SET enable_bitmapscan = off`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			for _, s := range settings {
				b.Configure(t, s)
			}
			var ages []int
			for _, age := range rand.Perm(15) {
				b.Booked(t, "anna", -time.Duration(age+1)*time.Minute)
			}
			retried := b.Booked(t, "anna", -time.Hour) // its second attempt is due just now
			b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, retried.ID)
			for range 16 {
				c := b.MustClaim(t, "anna", nil)
				if c.Outcome != booking.Claimed {
					t.Fatalf("%+v", c)
				}
				b.MustFinish(t, c, storetest.Sent)
				ages = append(ages, int(storetest.Began.Sub(c.Push.SendAt)/time.Minute))
			}
			for i, age := range ages[1:] {
				if ages[0] != 60 || age != 15-i {
					t.Fatalf("claimed with ages of %v minutes", ages)
				}
			}
		})
	}
}

// TestClaim_RecordsAttempt checks that a claim inserts a row for its attempt.
func TestClaim_RecordsAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	for attempt := 1; attempt <= 3; attempt++ {
		c := b.MustClaim(t, "anna", storetest.ThreeRules)
		if c.Outcome != booking.Claimed || c.Attempt != attempt || c.LeaseUntil.Sub(c.StartedAt) != time.Minute {
			t.Fatalf("attempt %d: %+v", attempt, c)
		}
		got := b.MustRead(t, p)
		if got.Status != push.Sending || got.Attempts != attempt || len(got.Sends) != attempt {
			t.Fatalf("attempt %d: %+v", attempt, got)
		}
		open := got.Sends[attempt-1]
		if open.Attempt != attempt || !open.StartedAt.Equal(c.StartedAt) || !open.EndedAt.IsZero() || open.Outcome != "" {
			t.Errorf("attempt %d: %+v", attempt, open)
		}
		b.MustFinish(t, c, storetest.TryAgain)
	}
}

// TestClaim_OneAttemptPerRecipient checks that claims during an attempt get nothing, and that the finish of the attempt
// reports that more pushes are due.
func TestClaim_OneAttemptPerRecipient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.Booked(t, "anna", -time.Minute)
	c := b.Claimed(t, first)

	// A wake-up for a push that is not due yet, or for no push.
	if other := b.MustClaim(t, "anna", nil); other.Outcome != booking.Nothing {
		t.Fatalf("%+v", other)
	}
	if more := b.MustFinish(t, c, storetest.Sent); more {
		t.Error("more is said to be due, and nothing is")
	}

	// Another push becomes due while one is being sent.
	second := b.Booked(t, "anna", -30*time.Second)
	c = b.Claimed(t, second)
	third := b.Booked(t, "anna", -20*time.Second)
	if other := b.MustClaim(t, "anna", nil); other.Outcome != booking.Nothing {
		t.Fatalf("%+v", other)
	}
	if more := b.MustFinish(t, c, storetest.TryAgain); !more {
		t.Error("another push waits, and the finish does not report it")
	}

	// Two pushes are due when one of them is claimed.
	c = b.Claimed(t, second)
	if more := b.MustFinish(t, c, storetest.Sent); !more {
		t.Error("another push was due at the claim, and the finish does not report it")
	}
	// The flag is cleared.
	if more := b.MustFinish(t, b.Claimed(t, third), storetest.Sent); more {
		t.Error("all is sent, and more is said to be due")
	}
	b.MustAudit(t, nil)
}

// TestClaim_BesideFinish checks that a claim reads again if the attempt that it is about to mark ends first.
func TestClaim_BesideFinish(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.Booked(t, "anna", -time.Minute)
	b.Claimed(t, first)
	second := b.Booked(t, "anna", -time.Second)

	b.Exec(t, `BEGIN`)
	b.Exec(t, `UPDATE pushes SET status = 'sent', plan = plan + 1 WHERE id = $1`, first.ID)
	claims := make(chan booking.Claim, 1)
	go func() { claims <- b.MustClaim(t, "anna", nil) }()
	b.Waiting(t, 1)
	b.Exec(t, `COMMIT`)
	if c := <-claims; c.Outcome != booking.Again {
		t.Fatalf("%+v: the second push would wait for its wake-up to be armed again", c)
	}
	b.Claimed(t, second)
}

// TestClaim_SameRecipientInOneGroup checks that one of many claims for a recipient in a group gets the push.
func TestClaim_SameRecipientInOneGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		b.Booked(t, "anna", -time.Duration(i)*time.Second)
	}
	states := make(chan booking.ClaimOutcome, 64)
	for range 64 {
		go func() { states <- b.MustClaim(t, "anna", nil).Outcome }()
	}
	n := map[booking.ClaimOutcome]int{}
	for range 64 {
		n[<-states]++
	}
	if n[booking.Claimed] != 1 || n[booking.Nothing] != 63 {
		t.Errorf("claims %v", n)
	}
}
