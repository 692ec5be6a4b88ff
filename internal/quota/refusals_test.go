package quota_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestRefused checks that the latest refusals are stored, newest first, and few more than are shown.
func TestRefused(t *testing.T) {
	l, rdb := newCache(t)
	much, little := anybody(), anybody()
	text := func(n int) string { return fmt.Sprintf("refusal %d", n) }
	for n := range 120 {
		l.Refused(much, []byte(text(n)))
		if n%50 == 0 {
			l.Refused(little, []byte(text(n)))
		}
		if n%10 == 0 {
			flush(t, l)
		}
	}
	flush(t, l)
	var latest []string
	for n := 119; n >= 100; n-- {
		latest = append(latest, text(n))
	}
	if got := l.Refusals(t.Context(), much); !slices.Equal(got, latest) {
		t.Errorf("%q, want %q", got, latest)
	}
	if got, want := l.Refusals(t.Context(), little), []string{text(100), text(50), text(0)}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for _, key := range rdb.Keys(t.Context(), "*:refused").Val() {
		if n := rdb.LLen(t.Context(), key).Val(); n >= 40 {
			t.Errorf("%d refusals are stored for one recipient", n)
		}
		if left := rdb.PTTL(t.Context(), key).Val(); left <= quota.RefusalTime/2 {
			t.Errorf("they expire in %s", left)
		}
	}
}
