package push_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestRetry_After covers the ends of an attempt. The channel tries five times, starting a second apart; the delays here
// leave no room for spreading.
func TestRetry_After(t *testing.T) {
	const hour = time.Hour
	retry := push.Retry{MaxAttempts: 5, First: time.Second, Max: time.Minute}
	failing := push.Retry{MaxAttempts: 5, First: time.Second, Max: time.Minute, FailOnUnknown: true}
	busy := push.Attempt{Number: 1, Outcome: push.Refused, RetryAfter: 30 * time.Second, Error: "busy"}
	lost := push.Attempt{Number: 1, Outcome: push.Unknown, RetryAfter: 30 * time.Second, Error: "reset"}
	numbered := func(a push.Attempt, n int) push.Attempt { a.Number = n; return a }
	final := func(a push.Attempt) push.Attempt { a.Final = true; return a }

	for _, row := range []struct {
		name    string
		retry   push.Retry
		attempt push.Attempt
		left    time.Duration
		want    push.Resolution
	}{
		{"delivered", retry, push.Attempt{Number: 1, Outcome: push.Delivered}, hour, push.Resolution{Status: push.Sent}},
		{"delivered at the last attempt, too late", retry, push.Attempt{Number: 5, Outcome: push.Delivered}, -hour, push.Resolution{Status: push.Sent}},
		{"delivered, where unknown fails", failing, push.Attempt{Number: 1, Outcome: push.Delivered}, hour, push.Resolution{Status: push.Sent}},
		{"refused", retry, busy, hour, push.Resolution{Status: push.Scheduled, Delay: 30 * time.Second, Reason: "busy"}},
		{"refused, where unknown fails", failing, busy, hour, push.Resolution{Status: push.Scheduled, Delay: 30 * time.Second, Reason: "busy"}},
		{"refused permanently", retry, final(busy), hour, push.Resolution{Status: push.Failed, Reason: "busy"}},
		{"unknown", retry, lost, hour, push.Resolution{Status: push.Scheduled, Delay: 30 * time.Second, Reason: "reset"}},
		{"unknown, where that fails", failing, lost, hour, push.Resolution{Status: push.Failed, Reason: "outcome unknown, and on_unknown is fail: reset"}},
		{"one attempt left", retry, numbered(busy, 4), hour, push.Resolution{Status: push.Scheduled, Delay: 30 * time.Second, Reason: "busy"}},
		{"no attempt left", retry, numbered(busy, 5), hour, push.Resolution{Status: push.Failed, Reason: "gave up after 5 attempts: busy"}},
		{"the only attempt", push.Retry{MaxAttempts: 1}, busy, hour, push.Resolution{Status: push.Failed, Reason: "gave up after 1 attempt: busy"}},
		{"more attempts than allowed", retry, numbered(busy, 6), hour, push.Resolution{Status: push.Failed, Reason: "gave up after 6 attempts: busy"}},
		{"just time enough", retry, busy, 30*time.Second + 1, push.Resolution{Status: push.Scheduled, Delay: 30 * time.Second, Reason: "busy"}},
		{"no time left", retry, busy, 30 * time.Second, push.Resolution{Status: push.Failed, Reason: "no time for another attempt before it expires: busy"}},
		{"expired meanwhile", retry, busy, -time.Second, push.Resolution{Status: push.Failed, Reason: "no time for another attempt before it expires: busy"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if diff := cmp.Diff(row.want, row.retry.After(row.attempt, row.left, []byte("seed"))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestRetry_Backoff compares every delay with the doubling series, less up to a fifth.
func TestRetry_Backoff(t *testing.T) {
	retry := push.Retry{MaxAttempts: 100, First: 5 * time.Second, Max: time.Minute}
	full := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, time.Minute, time.Minute}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 99).Draw(t, "attempt")
		seed := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "seed")
		refused := push.Attempt{Number: n, Outcome: push.Refused}
		delay := retry.After(refused, time.Hour, seed).Delay
		if most := full[min(n, len(full))-1]; delay > most || delay < most*4/5 {
			t.Fatalf("attempt %d: %s, want %s less a fifth", n, delay, most)
		}
		if again := retry.After(refused, time.Hour, seed).Delay; again != delay {
			t.Fatalf("attempt %d: %s, then %s", n, delay, again)
		}
		refused.RetryAfter = 10 * time.Minute
		if asked := retry.After(refused, time.Hour, seed).Delay; asked != 10*time.Minute {
			t.Fatalf("the provider asked for 10m, the delay is %s", asked)
		}
	})
}

func TestRetry_Spreads(t *testing.T) {
	retry := push.Retry{MaxAttempts: 2, First: time.Minute, Max: time.Minute}
	seen := map[time.Duration]bool{}
	for i := range 100 {
		seen[retry.After(push.Attempt{Number: 1}, time.Hour, fmt.Append(nil, "push ", i)).Delay.Round(time.Second)] = true
	}
	if len(seen) < 10 {
		t.Errorf("100 pushes that failed together come back in %d different seconds", len(seen))
	}
}
