package outbound

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const maxRetryAfter = 400 * 24 * time.Hour // longer than any push lives

// RetryAfter reads the header Retry-After, in seconds or as an HTTP date, and reports whether it could. A past time is
// no wait; a long one is cut to 400 days.
func RetryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	header := h.Get("Retry-After")
	if header == "" {
		return 0, false
	}
	seconds, err := strconv.ParseUint(header, 10, 32)
	if err == nil || errors.Is(err, strconv.ErrRange) { // out of range, ParseUint returns the maximum
		return min(time.Duration(seconds)*time.Second, maxRetryAfter), true
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter), true
	}
	return 0, false
}

// Printable removes unprintable characters from s, and cuts it to limit bytes without splitting a character.
func Printable(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, s)
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
