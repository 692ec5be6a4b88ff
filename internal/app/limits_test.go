package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// TestCallerLimits_AgreeWithSettings: the limiter can run exactly the limits that the settings accept, with the same
// defaults.
func TestCallerLimits_AgreeWithSettings(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sendquota.yaml")
	accepted := 0
	for i, l := range manyLimits() {
		if testing.Short() && i%11 > 0 {
			continue
		}
		text := fmt.Sprintf("algorithm: %s, limit: %d, per: %s", l.Algorithm, l.Limit, l.Per)
		if l.Burst != 0 {
			text += fmt.Sprintf(", burst: %d", l.Burst)
		}
		if l.Precision != 0 {
			text += fmt.Sprintf(", precision: %s", l.Precision)
		}
		if l.Aligned {
			text += ", aligned: true"
		}
		if l.Refill != "" {
			text += ", refill: " + string(l.Refill)
		}
		if err := os.WriteFile(path, []byte("api_limits: {per_key: [{"+text+"}]}"), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := config.LoadDev([]string{"SENDQUOTA_CONFIG=" + path})
		var faults config.Errors
		if err != nil && !errors.As(err, &faults) {
			t.Fatal(err)
		}
		if found := l.Validate(); (len(found) == 0) != (err == nil) {
			t.Fatalf("%s: the settings say %v, the limiter %v", text, err, found)
		}
		if err != nil {
			continue
		}
		accepted++
		got, want := c.APILimits.PerKey[0], l.WithDefaults()
		if got.Burst != want.Burst || got.Precision != 0 && got.Precision != want.Precision || got.Aligned != want.Aligned {
			t.Fatalf("%s: the settings make it %+v, the limiter %+v", text, got, want)
		}
	}
	least := 100
	if testing.Short() {
		least = 10
	}
	if accepted < least {
		t.Errorf("only %d limits were accepted", accepted)
	}
}

func manyLimits() (all []ratelimit.Limit) {
	for _, a := range ratelimit.Algorithms {
		for _, limit := range []int{1, 10_000, 10_001, 1_000_000_000, 1_000_000_001} {
			for _, per := range []time.Duration{time.Microsecond, time.Millisecond, 1500 * time.Microsecond, time.Second, time.Minute, ratelimit.MaxPer, ratelimit.MaxPer + time.Millisecond} {
				for _, burst := range []int{0, 1, 10, 11, 1_000_000_000, 1_000_000_001} {
					for _, precision := range []time.Duration{0, time.Millisecond, 60 * time.Millisecond, 1500 * time.Microsecond, time.Minute, ratelimit.MaxPer + time.Millisecond} {
						all = append(all, ratelimit.Limit{Algorithm: a, Limit: limit, Per: per, Burst: burst, Precision: precision})
					}
				}
			}
		}
	}
	forms := all[:len(all):len(all)]
	for i, l := range all { // some in other forms
		if i%7 == 0 {
			l.Aligned = true
			forms = append(forms, l)
		}
		if i%5 == 0 {
			l.Aligned, l.Refill = i%35 == 0, []ratelimit.Refill{ratelimit.Greedy, ratelimit.Interval}[i/5%2]
			forms = append(forms, l)
		}
	}
	return forms
}
