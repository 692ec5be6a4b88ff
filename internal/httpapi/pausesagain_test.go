package httpapi

import (
	"testing"
	"time"
)

// TestPauses_Again checks a repeated request for a pause: it takes over what it gives, leaves the rest as it is, and writes an entry of the
// audit log for each change only.
func TestPauses_Again(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format("2006-01-02T15:04:05.000000000Z") }
	one, two := at(time.Hour), at(2*time.Hour)
	made := b.send("POST", "/v1/pauses", `{"scope": "category", "name": "news", "reason": "wrong text", "until": "`+one+`"}`).must(t, 201)
	// The answers give microseconds, and no zeros at the end.
	until := func(s string) any {
		given, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return given.Truncate(time.Microsecond).Format(time.RFC3339Nano)
	}
	changes := 0
	for _, step := range []struct {
		body    string
		reason  string
		until   any
		changed bool
	}{
		{`"reason": "wrong text", "until": "` + one + `"`, "wrong text", until(one), false},
		{``, "wrong text", until(one), false},
		{`"reason": "wrong prices"`, "wrong prices", until(one), true},
		{`"until": "` + two + `"`, "wrong prices", until(two), true},
		{`"until": "` + one + `"`, "wrong prices", until(one), true},
		{`"until": null`, "wrong prices", nil, true},
		{`"until": null`, "wrong prices", nil, false},
		{`"reason": null, "until": "` + two + `"`, "", until(two), true},
		{`"reason": ""`, "", until(two), false},
	} {
		body := `{"scope": "category", "name": "news"`
		if step.body != "" {
			body += ", " + step.body
		}
		got := b.send("POST", "/v1/pauses", body+"}").must(t, 200)
		if got.body["id"] != made.body["id"] || got.body["reason"] != step.reason || got.body["until"] != step.until {
			t.Errorf("%s: %s, want %q until %v", step.body, got.text, step.reason, step.until)
		}
		if read := b.send("GET", "/v1/pauses/"+made.at(t, "id").(string), "").must(t, 200); read.body["until"] != step.until || read.body["reason"] != step.reason {
			t.Errorf("%s: it is kept as %s", step.body, read.text)
		}
		if step.changed {
			changes++
		}
		entries := b.send("GET", "/v1/audit-log?action=pause.change", "").must(t, 200).at(t, "entries").([]any)
		if len(entries) != changes {
			t.Errorf("%s: %d entries, want %d", step.body, len(entries), changes)
		}
	}
	b.send("POST", "/v1/pauses", `{"scope": "category", "name": "news", "until": "2020-01-01T00:00:00Z"}`).must(t, 422, "invalid-request")
}
