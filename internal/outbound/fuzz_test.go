package outbound

import (
	"net/http"
	"testing"
	"time"
)

// FuzzRetryAfter holds that a provider can ask for no wait below nothing or
// beyond the longest, and that what it asks for is what it says.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "-1", "+5", "1.5", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT", "Sat, 01 Jan 2050 00:00:00 GMT", "1e3", " 5", "０"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, header string) {
		wait, asked := RetryAfter(http.Header{"Retry-After": {header}}, now)
		if wait < 0 || wait > maxRetryAfter || !asked && wait != 0 {
			t.Errorf("%q: %s, %v", header, wait, asked)
		}
		if at, err := http.ParseTime(header); err == nil && asked && wait > 0 && wait < maxRetryAfter && !now.Add(wait).Equal(at) {
			t.Errorf("%q: %s is not then", header, wait)
		}
	})
}
