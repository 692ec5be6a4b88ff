package channel

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"
)

// FuzzRetryAfter holds that a provider can ask for no wait below nothing or
// beyond the longest, and that what it asks for is what it says.
func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "0", "120", "-1", "+5", "1.5", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT", "Sat, 01 Jan 2050 00:00:00 GMT", "1e3", " 5", "０"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, header string) {
		wait, asked := retryAfter(header, now)
		if wait < 0 || wait > maxRetryAfter || !asked && wait != 0 {
			t.Errorf("%q: %s, %v", header, wait, asked)
		}
		if at, err := http.ParseTime(header); err == nil && asked && wait > 0 && wait < maxRetryAfter && !now.Add(wait).Equal(at) {
			t.Errorf("%q: %s is not then", header, wait)
		}
	})
}

// FuzzProviderID holds that an id from an answer is printable and short, and is
// in the answer.
func FuzzProviderID(f *testing.F) {
	for _, seed := range []string{`{"id":"m-1"}`, `{"message_id":12345678901234567890}`, `{"id":null,"message_id":"x"}`, `{"id":["x"]}`, `{"id":"` + strings.Repeat("é", 300) + `"}`, `{"id":"a\nb\u0000"}`, `[`, ``, `{"id":-0.5e3}`, "{\"id\":\"\xff\"}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		id := providerID(body)
		if len(id) > maxProviderID || !utf8.ValidString(id) || strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", id)
		}
		if id != "" && !json.Valid(body) {
			t.Errorf("%q from what is no JSON", id)
		}
	})
}
