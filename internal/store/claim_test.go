package store_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

func TestClaimOfWhatIsNotDue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		nextAt string // as SQL
		want   store.ClaimOutcome
	}{
		"far ahead":            {`clock_timestamp() + interval '1 hour'`, store.Nothing},
		"just beyond patience": {`clock_timestamp() + interval '5 seconds'`, store.Nothing},
		"soon":                 {`clock_timestamp() + interval '1.5 seconds'`, store.Wait},
		"due":                  {`clock_timestamp()`, store.Claimed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			p := b.booked(t, "anna", -time.Minute)
			b.exec(t, `UPDATE pushes SET next_at = `+row.nextAt)
			c := b.claim(t, "anna", threeRules)
			if c.Outcome != row.want {
				t.Fatalf("%+v", c)
			}
			if c.Outcome == store.Wait && (c.Wait <= 0 || c.Wait > 1500*time.Millisecond) {
				t.Errorf("asks to wait for %s", c.Wait)
			}
			if after := b.read(t, p); row.want != store.Claimed && (after.Status != push.Scheduled || after.Gen != p.Gen) {
				t.Errorf("it was changed: %+v", after)
			}
		})
	}
}

// TestClaimsTakeTheOldestFirst whatever order they were booked in, and however
// Postgres chooses to read them.
func TestClaimsTakeTheOldestFirst(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string][]string{
		"by any plan":       nil,
		"by bitmap":         {`SET enable_indexscan = off`},
		"by the whole heap": {`SET enable_indexscan = off`, `SET enable_bitmapscan = off`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, s := range settings {
				b.configure(t, s)
			}
			var ages []int
			for _, age := range rand.Perm(15) {
				b.booked(t, "anna", -time.Duration(age+1)*time.Minute)
			}
			retried := b.booked(t, "anna", -time.Hour) // its second attempt is due just now
			b.exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, retried.ID)
			for range 16 {
				c := b.claim(t, "anna", nil)
				if c.Outcome != store.Claimed {
					t.Fatalf("%+v", c)
				}
				b.finish(t, c, sent)
				ages = append(ages, int(began.Sub(c.Push.SendAt)/time.Minute))
			}
			for i, age := range ages[1:] {
				if ages[0] != 60 || age != 15-i {
					t.Fatalf("claimed with ages of %v minutes", ages)
				}
			}
		})
	}
}

// TestClaimRecordsTheAttempt before anything is sent.
func TestClaimRecordsTheAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.booked(t, "anna", 0)
	for attempt := 1; attempt <= 3; attempt++ {
		c := b.claim(t, "anna", threeRules)
		if c.Outcome != store.Claimed || c.Attempt != attempt || c.LeaseUntil.Sub(c.StartedAt) != time.Minute {
			t.Fatalf("attempt %d: %+v", attempt, c)
		}
		got := b.read(t, p)
		if got.Status != push.Sending || got.Attempts != attempt || len(got.Sends) != attempt {
			t.Fatalf("attempt %d: %+v", attempt, got)
		}
		open := got.Sends[attempt-1]
		if open.Attempt != attempt || !open.StartedAt.Equal(c.StartedAt) || !open.EndedAt.IsZero() || open.Outcome != "" {
			t.Errorf("attempt %d: %+v", attempt, open)
		}
		b.finish(t, c, tryAgain)
	}
}

// TestOneAttemptPerRecipient: who comes meanwhile gets nothing, and the one at
// work is told that somebody came.
func TestOneAttemptPerRecipient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.booked(t, "anna", -time.Minute)
	c := b.claimed(t, first)

	// A wake-up of a push that is not due yet, or of none at all.
	if other := b.claim(t, "anna", nil); other.Outcome != store.Nothing {
		t.Fatalf("%+v", other)
	}
	if more := b.finish(t, c, sent); more {
		t.Error("more is said to be due, and nothing is")
	}

	// Another push comes while one is being sent.
	second := b.booked(t, "anna", -30*time.Second)
	c = b.claimed(t, second)
	third := b.booked(t, "anna", -20*time.Second)
	if other := b.claim(t, "anna", nil); other.Outcome != store.Nothing {
		t.Fatalf("%+v", other)
	}
	if more := b.finish(t, c, tryAgain); !more {
		t.Error("a push waits, and nobody is told")
	}

	// Two are due when one of them is claimed.
	c = b.claimed(t, second)
	if more := b.finish(t, c, sent); !more {
		t.Error("a push was due at the claim, and nobody is told")
	}
	// The flag is not left behind.
	if more := b.finish(t, b.claimed(t, third), sent); more {
		t.Error("all is sent, and more is said to be due")
	}
	b.audit(t, nil)
}

// TestNobodyIsForgottenBetweenClaimAndFinish: a finish that commits while a
// claim is about to leave word makes the claim look again.
func TestNobodyIsForgottenBetweenClaimAndFinish(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first := b.booked(t, "anna", -time.Minute)
	b.claimed(t, first)
	second := b.booked(t, "anna", -time.Second)

	b.exec(t, `BEGIN`)
	b.exec(t, `UPDATE pushes SET status = 'sent', gen = gen + 1, claim_token = NULL, lease_until = NULL WHERE id = $1`, first.ID)
	claims := make(chan store.Claim, 1)
	go func() { claims <- b.claim(t, "anna", nil) }()
	b.waiting(t, 1)
	b.exec(t, `COMMIT`)
	if c := <-claims; c.Outcome != store.Again {
		t.Fatalf("%+v: the second push would wait for its wake-up to be armed again", c)
	}
	b.claimed(t, second)
}

func TestClaimsOfOneRecipientInOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 5 {
		b.booked(t, "anna", -time.Duration(i)*time.Second)
	}
	states := make(chan store.ClaimOutcome, 64)
	for range 64 {
		go func() { states <- b.claim(t, "anna", nil).Outcome }()
	}
	n := map[store.ClaimOutcome]int{}
	for range 64 {
		n[<-states]++
	}
	if n[store.Claimed] != 1 || n[store.Nothing] != 63 {
		t.Errorf("claims %v", n)
	}
}
