package campaign_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/campaign"
)

// TestOffset_Stable: the offsets of some recipients are the same as in every release.
func TestOffset_Stable(t *testing.T) {
	t.Parallel()
	for recipient, want := range map[string]time.Duration{"": 1600 * time.Second, "anna": 600 * time.Second, "user-42": 770 * time.Second, "日本": 1456 * time.Second} {
		if got := campaign.Offset(recipient, 30*time.Minute); got != want {
			t.Errorf("%q: %s, want %s", recipient, got, want)
		}
	}
}

// TestOffset_Spread: offsets are whole seconds below the spread, about equally frequent, and in the same order for each
// spread.
func TestOffset_Spread(t *testing.T) {
	t.Parallel()
	of := map[time.Duration]int{}
	for i := range 60_000 {
		who := fmt.Sprint("user-", i)
		at := campaign.Offset(who, time.Minute)
		if of[at]++; at < 0 || at >= time.Minute || at%time.Second != 0 {
			t.Fatalf("%s: %s", who, at)
		}
		if day := campaign.Offset(who, 24*time.Hour); day/(24*60) > at+time.Second || day/(24*60) < at {
			t.Fatalf("%s: %s of a minute, and %s of a day", who, at, day)
		}
	}
	if len(of) != 60 {
		t.Errorf("%d seconds", len(of))
	}
	for at, n := range of {
		if n < 850 || n > 1150 {
			t.Errorf("%d recipients have the offset %s", n, at)
		}
	}
	for _, spread := range []time.Duration{-time.Hour, 0, 1, time.Second} {
		if got := campaign.Offset("anna", spread); got != 0 {
			t.Errorf("a spread of %s: %s", spread, got)
		}
	}
}
