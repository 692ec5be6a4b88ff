package httpapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestPauses_Lifecycle makes, repeats, extends, lists, reads and ends a pause, and checks that others do not see it.
func TestPauses_Lifecycle(t *testing.T) {
	t.Parallel()
	b := setup(t)
	made := b.send("POST", "/v1/pauses", `{"scope": "channel", "name": "push", "reason": "wrong text", "until": null}`)
	made.must(t, 201)
	id := made.at(t, "id").(string)
	for member, want := range map[string]any{"scope": "channel", "name": "push", "reason": "wrong text", "until": nil, "operator": false} {
		if got := made.body[member]; got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	again := b.send("POST", "/v1/pauses", `{"scope": "channel", "name": "push", "reason": "wrong text", "until": null}`)
	if again.must(t, 200); again.text != made.text {
		t.Errorf("again: %s", again.text)
	}
	b.send("GET", "/v1/pauses/"+id, "").must(t, 200)
	if list := b.send("GET", "/v1/pauses", ""); len(list.at(t, "pauses").([]any)) != 1 || list.body["next_page_token"] != "" {
		t.Errorf("list: %s", list.text)
	}
	if list := b.send("GET", "/v1/pauses", "", "Authorization", "Bearer "+b.other); len(list.at(t, "pauses").([]any)) != 0 {
		t.Errorf("another tenant sees %s", list.text)
	}
	b.send("GET", "/v1/pauses/"+id, "", "Authorization", "Bearer "+b.other).must(t, 404)
	b.send("DELETE", "/v1/pauses/"+id, "", "Authorization", "Bearer "+b.other).must(t, 404)
	b.send("DELETE", "/v1/pauses/"+id, "").must(t, 204)
	b.send("DELETE", "/v1/pauses/"+id, "").must(t, 404)
	b.send("GET", "/v1/pauses/"+id, "").must(t, 404)
}

// TestPauses_Until checks that a repeated pause ends when the last request asks for, and that one that is over is gone.
func TestPauses_Until(t *testing.T) {
	t.Parallel()
	b := setup(t)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	body := func(until string) string {
		return fmt.Sprintf(`{"scope": "category", "name": "news", "until": %s}`, until)
	}
	soon, later := at(time.Hour), at(2*time.Hour)
	made := b.send("POST", "/v1/pauses", body(`"`+soon+`"`))
	for _, step := range []struct{ until, want string }{{soon, soon}, {later, later}, {soon, soon}, {"", ""}, {soon, soon}} {
		asked := "null"
		if step.until != "" {
			asked = `"` + step.until + `"`
		}
		r := b.send("POST", "/v1/pauses", body(asked))
		r.must(t, 200)
		if got, _ := r.body["until"].(string); r.body["id"] != made.body["id"] || got != step.want {
			t.Errorf("until %s: %s, want until %q", asked, r.text, step.want)
		}
	}
	b.exec(`UPDATE pauses SET until = clock_timestamp() WHERE id = $1`, uuid.MustParse(made.at(t, "id").(string)))
	b.send("GET", "/v1/pauses/"+made.body["id"].(string), "").must(t, 404)
	if next := b.send("POST", "/v1/pauses", body("null")); next.status != 201 || next.body["id"] == made.body["id"] {
		t.Errorf("after the end of the first one: %d %s", next.status, next.text)
	}
}

// TestPauses_Errors checks that all errors of a pause are reported at once, each with its place.
func TestPauses_Errors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	theirs := b.send("POST", "/v1/campaigns", `{"name": "x", "channel": "push", "message": {"title": "x"}}`, "Authorization", "Bearer "+b.other)
	theirs.must(t, 201)
	for _, tt := range []struct{ body, want string }{
		{`{}`, "body.scope"},
		{`{"scope": "everything"}`, "body.scope"},
		{`{"scope": "all", "name": "push"}`, "body.name"},
		{`{"scope": "channel"}`, "body.name"},
		{`{"scope": "channel", "name": null}`, "body.name"},
		{`{"scope": "category", "name": ""}`, "body.name"},
		{`{"scope": "channel", "name": "pish", "until": "2020-01-01T00:00:00Z", "reazon": "x"}`, "body.name body.reazon body.until"},
		{`{"scope": "campaign", "name": "x", "until": "soon"}`, "body.name body.until"},
		{`{"scope": "campaign", "name": "` + uuid.NewString() + `"}`, "body.name"},
		{`{"scope": "campaign", "name": "` + theirs.at(t, "id").(string) + `"}`, "body.name"},
		{`{"scope": "all", "until": "2020-01-01T00:00:00Z"}`, "body.until"},
		{`{"scope": "all", "reason": 7}`, "body.reason"},
		{`{"scope": "all", "reason": "` + strings.Repeat("x", 501) + `"}`, "body.reason"},
	} {
		r := b.send("POST", "/v1/pauses", tt.body)
		r.must(t, 422)
		places := map[string]bool{}
		for _, one := range r.at(t, "errors").([]any) {
			places[one.(map[string]any)["location"].(string)] = true
		}
		got := strings.Join(slices.Sorted(maps.Keys(places)), " ")
		if got != tt.want {
			t.Errorf("%s: %s", tt.body, r.text)
		}
	}
	if r := b.send("POST", "/v1/pauses", `{"scope": "channel", "name": "pish"}`); !strings.Contains(r.text, "nearest name is push") {
		t.Errorf("no nearest name: %s", r.text)
	}
}

// TestPauses_Paused checks what submits, checks and moves say while sending is paused, and when it goes on.
func TestPauses_Paused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := 0
	paused := func(category string) []any {
		t.Helper()
		n++
		push := fmt.Sprintf(`{"recipient": "user-%d", "channel": "push", "category": "%s", "message": {"title": "x"}}`, n, category)
		one := b.send("POST", "/v1/pushes?validate_only=true", push)
		two := b.send("POST", "/v1/pushes", push)
		two.must(t, 201)
		three := b.send("POST", "/v1/pushes/batch", `{"pushes": [`+strings.Replace(push, "user", "person", 1)+`]}`)
		four := b.send("POST", "/v1/quota/check", fmt.Sprintf(`{"recipient": "user-%d", "channel": "push", "category": "%s"}`, n, category))
		batch := three.at(t, "results").([]any)[0].(map[string]any)["push"].(map[string]any)
		return []any{one.body["paused"], two.body["paused"], batch["paused"], four.body["paused"]}
	}
	want := func(category string, is bool) {
		t.Helper()
		for i, got := range paused(category) {
			if got != is {
				t.Errorf("answer %d for category %q says paused: %v, want %v", i, category, got, is)
			}
		}
	}
	want("news", false)
	made := b.send("POST", "/v1/pauses", `{"scope": "category", "name": "news"}`)
	want("news", true)
	want("other", false)
	want("", false)
	b.send("DELETE", "/v1/pauses/"+made.at(t, "id").(string), "").must(t, 204)
	want("news", false)
	b.send("POST", "/v1/pauses", `{"scope": "all", "until": "`+time.Now().Add(time.Hour).UTC().Format(time.RFC3339)+`"}`).must(t, 201)
	want("", true)
	b.exec(`UPDATE pauses SET until = clock_timestamp()`)
	b.exec(`UPDATE tenants SET pauses_version = pauses_version + 1`)
	want("", false)
}
