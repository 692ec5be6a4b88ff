package rest

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// mustHavePlaces checks that errors have a location and a message, and have JSON.
func mustHavePlaces(t *testing.T, list invalid.FieldErrors) {
	t.Helper()
	for _, f := range list {
		if f.Field == "" || f.Message == "" || !utf8.ValidString(f.Field+f.Message) || len(f.Field) > 200 || len(f.Message) > 500 {
			t.Errorf("a fault without place or message: %+v", f)
		}
		if text, err := json.Marshal(f); err != nil || len(text) > 4000 {
			t.Errorf("a fault of %d bytes: %v", len(text), err)
		}
	}
}

// FuzzTime holds that a time of a request is one of RFC 3339, is UTC, and is the same when it is written again.
func FuzzTime(f *testing.F) {
	for _, seed := range []string{"2026-12-01T09:00:00Z", "2026-12-01t09:00:00.123456789+01:00", "2026-12-01T9:00:00Z", "2026-12-01T09:00:00,5Z", "2026-12-01T09:00:00+25:00", "2026-12-01T09:00:00",
		"0001-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "2026-02-30T00:00:00Z", "2026-06-30T23:59:60Z", "", "Z", "2026-12-01T09:00:00-00:00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, message := parseTime(s)
		if message != "" {
			return
		}
		if got.IsZero() || got.Location() != time.UTC || got.Year() < 1 || got.Year() > 9999 {
			t.Errorf("%q is %v", s, got)
		}
		if plain, err := time.Parse(time.RFC3339Nano, strings.ToUpper(s)); err != nil || plain.Sub(got).Abs() > time.Nanosecond {
			t.Errorf("%q is %v, and otherwise %v (%v)", s, got, plain, err)
		}
		if again, message := parseTime(got.Format(time.RFC3339Nano)); message != "" || !again.Equal(got) {
			t.Errorf("%q is %v, and written again %v (%s)", s, got, again, message)
		}
	})
}

// FuzzQuery holds that parameters are at fault, with their names, or within their bounds.
func FuzzQuery(f *testing.F) {
	type filter struct {
		recipient string
		status    push.Status
		from      time.Time
		size      int
		only      bool
	}
	params := Table[filter]{Fields: []Field[filter]{
		{Name: "recipient", value: Text(func(q *filter, s string) { q.recipient = s }, 0, 128)},
		{Name: "status", value: OneOf(func(q *filter, s push.Status) { q.status = s }, push.Statuses...)},
		{Name: "from", value: Moment(func(q *filter, t time.Time) { q.from = t })},
		{Name: "page_size", value: Integer(func(q *filter, n int) { q.size = n }, 1, 500).Or("50")},
		{Name: "validate_only", value: Boolean(func(q *filter, v bool) { q.only = v })},
	}}
	for _, seed := range []string{"", "recipient=a&page_size=5", "page_size=0x10", "status=sent&status=sent", "from=2026-12-01T09:00:00Z", "from=2026-12-01T09:00:00%2B01:00", "validate_only", "validate_only=true", "%zz=1", "a;b=1", "recipient=%00", "\xff=\xff", "page_size=9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var (
			bad FieldErrors
			q   filter
		)
		params.ReadQuery(&http.Request{URL: &url.URL{RawQuery: raw}}, &q, &bad)
		mustHavePlaces(t, bad.List)
		for _, one := range bad.List {
			if !strings.HasPrefix(one.Field, "query") {
				t.Errorf("a fault of the query at %s", one.Field)
			}
		}
		if len(bad.List) > 0 {
			return
		}
		if Unfit(q.recipient, 0, 128) != "" || q.size < 1 || q.size > 500 || q.status != "" && !slices.Contains(push.Statuses, q.status) {
			t.Errorf("accepted: %+v", q)
		}
		if values, err := url.ParseQuery(raw); err != nil || q.only != (values.Get("validate_only") == "true") || q.from.IsZero() != (values.Get("from") == "") {
			t.Errorf("%q: %+v %v", raw, q, err)
		}
	})
}

// FuzzHeaders holds what may get into the log, the database and the hash of a key from headers.
func FuzzHeaders(f *testing.F) {
	for _, seed := range [][3]string{{"req-1", "k", "Bearer sq_x"}, {"a\nb", "\x00", "bearer  x "}, {strings.Repeat("x", 65), strings.Repeat("k", 256), "Basic x"}, {"ä", "ä", "Bearer"}, {"", "", ""}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, id, key, authorization string) {
		r := httptest.NewRequest("POST", "/v1/pushes", nil)
		r.Header["X-Request-Id"], r.Header["Idempotency-Key"], r.Header["Authorization"] = []string{id}, []string{key}, []string{authorization}
		if got := requestID(r); len(got) == 0 || len(got) > 64 || strings.ContainsFunc(got, notInID) {
			t.Errorf("request id %q", got)
		}
		var bad FieldErrors
		got := (&Call{Request: r}).IdempotencyKey(&bad)
		mustHavePlaces(t, bad.List)
		if len(bad.List) == 0 && (got != key || len(got) == 0 || len(got) > 255 || printableASCII(got) != got) {
			t.Errorf("idempotency key %q", got)
		}
		if secret, ok := bearer(r); ok && (secret == "" || strings.HasPrefix(secret, " ") || strings.HasSuffix(secret, " ") || !strings.Contains(authorization, secret)) {
			t.Errorf("key %q of %q", secret, authorization)
		}
		if err := checkMedia(http.Header{"Content-Type": {id}, "Content-Encoding": {key}}); err == nil && key != "" && !strings.EqualFold(key, "identity") {
			t.Errorf("the coding %q is accepted", key)
		}
	})
}
