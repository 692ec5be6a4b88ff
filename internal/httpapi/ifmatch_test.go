package httpapi

import (
	"net/http"
	"strconv"
	"sync"
	"testing"
)

// TestIfMatch_Campaigns: what was changed in between is neither changed nor started; what is so already may be said again.
func TestIfMatch_Campaigns(t *testing.T) {
	b := setup(t)
	path := b.campaignFor("recipient,first_name\nanna,Anna\n")
	read := b.send("GET", path, "").must(t, 200)
	seen := read.header.Get("Etag")
	if seen != strconv.Quote(read.at(t, "updated_at").(string)) {
		t.Errorf("the ETag is %s, %s", seen, read.text)
	}
	changed := b.send("PATCH", path, `{"name":"other"}`, "If-Match", seen).must(t, 200)
	if changed.header.Get("Etag") == seen {
		t.Error("a change keeps the ETag")
	}
	b.send("PATCH", path, `{"spread":"1h"}`, "If-Match", seen).must(t, 412, "stale-version")
	b.send("PATCH", path, `{"name":"other"}`, "If-Match", seen).must(t, 200) // as after a lost answer
	b.send("POST", path+"/start", "", "If-Match", seen).must(t, 412, "stale-version")
	b.send("POST", path+"/start", "", "If-Match", `"of something else"`).must(t, 412, "stale-version")
	b.send("POST", path+"/start", "", "If-Match", "yesterday").must(t, 422, "invalid-request")
	b.send("PATCH", path, `{"name":"x"}`, "If-Match", "yesterday").must(t, 422, "invalid-request")
	now := b.send("GET", path, "").must(t, 200)
	if now.at(t, "name") != "other" || now.at(t, "spread") != "0s" || now.at(t, "status") != "draft" {
		t.Error(now.text)
	}
	b.send("PUT", path+"/audience", "recipient,first_name\nbert,Bert\n", "Content-Type", "text/csv").must(t, 200)
	b.send("POST", path+"/start", "", "If-Match", now.header.Get("Etag")).must(t, 412, "stale-version") // the audience is another one
	now = b.send("GET", path, "").must(t, 200)
	started := b.send("POST", path+"/start", "", "If-Match", seen+", "+now.header.Get("Etag")).must(t, 202)
	b.send("POST", path+"/start", "", "If-Match", now.header.Get("Etag")).must(t, 202) // as after a lost answer
	if tag := started.header.Get("Etag"); tag == "" || tag == now.header.Get("Etag") {
		t.Errorf("after the start the ETag is %q", tag)
	}
}

// TestIfMatch_Race: of a start for what was seen and a change of it at the same time, one is refused: never is something started that
// was not seen.
func TestIfMatch_Race(t *testing.T) {
	b := setup(t)
	starts, changes := 0, 0
	for round := 0; round < 40 && starts < 3; round++ {
		path := b.campaignFor("recipient,first_name\nanna,Anna\n")
		seen := b.send("GET", path, "").must(t, 200)
		var start, change reply
		var both sync.WaitGroup
		startIt := func() { start = b.send("POST", path+"/start", "", "If-Match", seen.header.Get("Etag")) }
		changeIt := func() { change = b.send("PATCH", path, `{"message":{"title":"Something else"}}`) }
		first, second := startIt, changeIt
		if round%2 == 1 {
			first, second = second, first
		}
		both.Go(first)
		both.Go(second)
		both.Wait()
		now := b.send("GET", path, "").must(t, 200)
		title := now.at(t, "message", "title")
		switch {
		case start.status == http.StatusAccepted && change.status == http.StatusConflict && title == seen.at(t, "message", "title"):
			starts++
		case start.status == http.StatusPreconditionFailed && change.status == http.StatusOK && now.at(t, "status") == "draft":
			changes++
			b.send("DELETE", path, "").must(t, 204)
		default:
			t.Fatalf("the start got %d, the change %d: %s", start.status, change.status, now.text)
		}
	}
	t.Logf("%d starts and %d changes came first", starts, changes)
}

// TestIfMatch_Schedules: a schedule that was changed in between is not changed.
func TestIfMatch_Schedules(t *testing.T) {
	b := setup(t)
	made := b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"r","message":{}}}`).must(t, 201)
	path, seen := "/v1/schedules/"+made.at(t, "id").(string), made.header.Get("Etag")
	if read := b.send("GET", path, "").must(t, 200); read.header.Get("Etag") != seen || seen != strconv.Quote(read.at(t, "updated_at").(string)) {
		t.Errorf("the ETag is %s, and was %s: %s", read.header.Get("Etag"), seen, read.text)
	}
	b.send("PATCH", path, `{"cron":"@hourly"}`, "If-Match", seen).must(t, 200)
	b.send("PATCH", path, `{"cron":"@weekly"}`, "If-Match", seen).must(t, 412, "stale-version")
	b.send("PATCH", path, `{"name":"n"}`, "If-Match", seen).must(t, 412, "stale-version")
	b.send("PATCH", path, `{"cron":"@hourly"}`, "If-Match", seen).must(t, 200)
	if now := b.send("GET", path, "").must(t, 200); now.at(t, "cron") != "@hourly" || now.at(t, "name") != "" {
		t.Error(now.text)
	}
}
