package delivery

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// A provider goes down, is tried again too early, and comes back.
func TestBreaker(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := breaker{first: time.Second, longest: 3 * time.Second}
	room := func(want int, wait time.Duration) {
		t.Helper()
		if n, w := b.room(now, 100); n != want || w != wait {
			t.Fatalf("room for %d, or in %s; want %d, %s", n, w, want, wait)
		}
	}
	attempts := func(n int, trouble bool) {
		for range n {
			b.ended(trouble, true, now)
		}
	}
	// Nine failures, a success, and nine more do not open it.
	attempts(9, true)
	attempts(1, false)
	attempts(9, true)
	room(100, 0)

	// The tenth opens it. Attempts that were under way do not count twice.
	attempts(1, true)
	room(0, time.Second)
	attempts(50, true)
	room(0, time.Second)

	// One attempt fails: twice the pause. After another failure, the pause has its maximum.
	for _, pause := range []time.Duration{2 * time.Second, 3 * time.Second, 3 * time.Second} {
		_, wait := b.room(now, 100)
		now = now.Add(wait)
		room(1, 0)
		attempts(1, true)
		room(0, pause)
	}

	// It works again: one, two, four, …
	now = now.Add(3 * time.Second)
	for n := 1; n <= trialsToClose; n *= 2 {
		room(min(n, 100), 0)
		if b.closed() {
			t.Fatal("it is closed already")
		}
		attempts(1, false)
	}
	room(100, 0)
	if !b.closed() {
		t.Error("it is not closed")
	}

	// The next outage begins with the first pause again.
	attempts(10, true)
	room(0, time.Second)
}

// A breaker pauses as long as the provider asked, and then tries gently.
func TestBreaker_Hold(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := breaker{first: time.Second, longest: time.Minute}
	b.hold(now.Add(5 * time.Second))
	b.hold(now.Add(2 * time.Second)) // does not shorten it
	if n, wait := b.room(now, 100); n != 0 || wait != 5*time.Second {
		t.Errorf("room for %d, or in %s", n, wait)
	}
	now = now.Add(5 * time.Second)
	if n, _ := b.room(now, 100); n != 1 {
		t.Errorf("room for %d", n)
	}
	b.ended(true, true, now)
	if _, wait := b.room(now, 100); wait != time.Second {
		t.Errorf("it pauses for %s", wait)
	}
}

// TestBreaker_State: the state distinguishes a provider that is down from one that asked for a pause, until the pause
// ends.
func TestBreaker_State(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := breaker{first: time.Second, longest: time.Second}
	wants := func(want channelhealth.State) {
		t.Helper()
		if got := b.state(now); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	wants(channelhealth.Working)
	for range failuresToOpen {
		b.ended(true, true, now)
	}
	wants(channelhealth.Failing)
	b.hold(now.Add(500 * time.Millisecond)) // shorter
	wants(channelhealth.Failing)
	b.hold(now.Add(2 * time.Second))
	wants(channelhealth.Paused)
	now = now.Add(2 * time.Second)
	wants(channelhealth.Trying)
	b.ended(true, true, now)
	wants(channelhealth.Failing)
	now = now.Add(time.Second)
	for range 2 * trialsToClose {
		b.ended(false, true, now)
	}
	wants(channelhealth.Working)
}
