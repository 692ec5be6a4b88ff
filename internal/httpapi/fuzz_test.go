package httpapi

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

// mustBePlaced wants faults that say where and what, and can be sent.
func mustBePlaced(t *testing.T, list invalid.FieldErrors) {
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

// FuzzPush holds that a push is at fault, with places, or within all bounds and the same when it is written again.
func FuzzPush(f *testing.F) {
	for _, seed := range []string{
		`{"recipient":"r","message":{}}`, string(exampleRequest), `{"recipient":"","message":[]}`, `{"recipient":"r","message":{"title":1},"to":"\u0000"}`,
		`{"recipient":"r","message":{},"send_at":"2026-12-01t09:00:00.5z"}`, `{"recipient":"r","recipient":"s","message":{"a":1,"a":2}}`, `{"x":1}`, `[]`, `{"recipient":"\ud800","message":{}}`,
		`{"recipient":"r","message":{},"on_conflict":"defer","latest":"9999-12-31T23:59:59Z","metadata":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got, again form
		if readWhole(text, &fieldErrors{}, func(r *reader) { got.read(r, &pushFields) }) != nil {
			return
		}
		var all fieldErrors
		all.addAll("body", got.fieldErrors)
		mustBePlaced(t, all.list)
		if len(got.list) > 0 {
			return
		}
		if unfit(got.Recipient, 1, maxRecipient) != "" || unfit(got.Channel, 0, maxChannel) != "" || unfit(got.Category, 0, maxCategory) != "" || unfit(got.To, 0, maxTo) != "" ||
			!json.Valid(got.Message) || got.Metadata != nil && !json.Valid(got.Metadata) {
			t.Fatalf("accepted: %+v", got.Request)
		}
		again.read(newReader(written(t, got.Request)), &pushFields)
		if diff := cmp.Diff(got.Request, again.Request); diff != "" || len(again.list) > 0 {
			t.Errorf("written again it is another one (-first +second):\n%s\n%+v", diff, again.list)
		}
	})
}

// written writes a request as a caller would, with message and metadata as they came.
func written(t *testing.T, r schedule.Request) []byte {
	t.Helper()
	b := append([]byte(`{"message":`), r.Message...)
	if r.Metadata != nil {
		b = append(append(b, `,"metadata":`...), r.Metadata...)
	}
	for name, text := range map[string]string{"recipient": r.Recipient, "channel": r.Channel, "category": r.Category, "to": r.To} {
		value, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		b = append(append(b, `,"`+name+`":`...), value...)
	}
	for name, at := range map[string]time.Time{"send_at": r.SendAt, "expires_at": r.ExpiresAt, "latest": r.Latest} {
		if !at.IsZero() {
			b = append(b, `,"`+name+`":"`+at.Format(time.RFC3339Nano)+`"`...)
		}
	}
	if r.Template {
		b = append(b, `,"template":true`...)
	}
	if r.Variables != nil {
		b = append(append(b, `,"variables":`...), r.Variables...)
	}
	if r.Defer {
		b = append(b, `,"on_conflict":"defer"`...)
	}
	return append(b, '}')
}

// FuzzBatch holds that a batch has as many members as its array, or a fault.
func FuzzBatch(f *testing.F) {
	for _, seed := range []string{
		string(exampleBatchRequest), `{"pushes":[]}`, `{"pushes":{}}`, `{"pushes":[1,[],"x"],"atomic":1}`, `{"pushes":[{}],"pushes":[{},{}]}`, `{}`,
		`{"pushes":[` + strings.Repeat(`1,`, maxMembers) + `1]}`, `{"pushes":[{"x":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var (
			b   batchForm
			bad fieldErrors
		)
		if readWhole(text, &bad, func(r *reader) { batchFields.read(r, &b, &b.fieldErrors) }) != nil {
			return
		}
		for i := range b.forms {
			bad.addAll(place(i), b.forms[i].fieldErrors)
		}
		bad.addAll("body", b.fieldErrors)
		mustBePlaced(t, bad.list)
		var plain struct{ Pushes []json.RawMessage }
		if len(b.list) == 0 && json.Unmarshal(text, &plain) == nil && strings.Count(string(text), `ushes"`) == 1 && !bytes.ContainsRune(text, '\\') &&
			len(plain.Pushes) != len(b.forms) {
			t.Errorf("%d members of %d", len(b.forms), len(plain.Pushes))
		}
		if len(b.forms) > maxMembers || len(b.forms) == 0 && len(b.list) == 0 {
			t.Errorf("%d members, %d faults", len(b.forms), len(b.list))
		}
	})
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
	params := table[filter]{fields: []field[filter]{
		{name: "recipient", value: text(func(q *filter, s string) { q.recipient = s }, 0, maxRecipient)},
		{name: "status", value: oneOf(func(q *filter, s push.Status) { q.status = s }, push.Statuses...)},
		{name: "from", value: moment(func(q *filter, t time.Time) { q.from = t })},
		{name: "page_size", value: integer(func(q *filter, n int) { q.size = n }, 1, 500).or("50")},
		{name: "validate_only", value: boolean(func(q *filter, v bool) { q.only = v })},
	}}
	for _, seed := range []string{"", "recipient=a&page_size=5", "page_size=0x10", "status=sent&status=sent", "from=2026-12-01T09:00:00Z", "from=2026-12-01T09:00:00%2B01:00", "validate_only", "validate_only=true", "%zz=1", "a;b=1", "recipient=%00", "\xff=\xff", "page_size=9223372036854775808"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var (
			bad fieldErrors
			q   filter
		)
		params.readQuery(&http.Request{URL: &url.URL{RawQuery: raw}}, &q, &bad)
		mustBePlaced(t, bad.list)
		for _, one := range bad.list {
			if !strings.HasPrefix(one.Field, "query") {
				t.Errorf("a fault of the query at %s", one.Field)
			}
		}
		if len(bad.list) > 0 {
			return
		}
		if unfit(q.recipient, 0, maxRecipient) != "" || q.size < 1 || q.size > 500 || q.status != "" && !slices.Contains(push.Statuses, q.status) {
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
		var bad fieldErrors
		got := (&call{r: r}).idempotencyKey(&bad)
		mustBePlaced(t, bad.list)
		if len(bad.list) == 0 && (got != key || len(got) == 0 || len(got) > 255 || printableASCII(got) != got) {
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

// FuzzAPI holds that no request at all makes the API fail unforeseen, and that what it answers is JSON with its
// hardening.
func FuzzAPI(f *testing.F) {
	for _, seed := range [][4]string{{"POST", "/v1/pushes", "", "{"}, {"POST", "/v1/pushes/batch", "atomic=1", `{"pushes":[]}`}, {"PATCH", "/v1/pushes/" + exampleID, "", `{"send_at":1}`},
		{"GET", "/v1/recipients/%2f/slots", "from=x", ""}, {"GET", "/v1/pushes/%zz", "", ""}, {"BREW", "/../v1", "%", "\xff"}, {"POST", "/v1/quota/check", "", `{"recipient":""}`}} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	for _, seed := range [][4]string{
		{"POST", "/v1/schedules", "", string(exampleNewSchedule)}, {"POST", "/v1/schedules", "", `{"cron":"TZ= ","time_zone":"","push":{"send_at":1},"campaign":1,"until":null}`},
		{"PATCH", "/v1/schedules/" + exampleID, "", `{"push":[],"cron":"@every"}`}, {"GET", "/v1/schedules/" + exampleID + "/next", "n=-1", ""}, {"GET", "/v1/schedules", "page_token=AAAA", ""},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	service := nothingBooked(f)
	api := New(service, everything{}, Config{
		Schedules: recurring.New(noPostgres(f), service, time.Now, recurring.Config{}), Campaigns: campaignsOf(noPostgres(f), time.Now),
	})
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL, r.Header = method, &url.URL{Path: path, RawQuery: query}, http.Header{"Authorization": {"Bearer k"}}
		rec := httptest.NewRecorder()
		api.ServeHTTP(rec, r)
		if rec.Code == http.StatusInternalServerError || rec.Code == 0 {
			t.Errorf("%d %s", rec.Code, rec.Body)
		}
		if h := rec.Header(); strings.Contains(h.Get("Content-Type"), "json") && rec.Body.Len() > 0 && !json.Valid(rec.Body.Bytes()) || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%v %s", h, rec.Body)
		}
	})
}

// nothingBooked is a service whose Postgres is not there: what gets so far is answered with 503.
func nothingBooked(f *testing.F) *schedule.Service {
	b := &bundle{}
	b.rdb = deadRedis(f)
	return b.service(noPostgres(f), testPolicy())
}

func noPostgres(f *testing.F) *store.Store {
	st, err := store.Open(f.Context(), "postgres://user@127.0.0.1:1/nothing", store.Config{Timeout: time.Millisecond})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(st.Close)
	return st
}

func deadRedis(f *testing.F) *redis.Client {
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialTimeout: time.Millisecond, DialerRetries: 1})
	f.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
