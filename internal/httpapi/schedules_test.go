package httpapi

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurring"
)

// TestSchedules goes the way of a tenant with its schedule.
func TestSchedules(t *testing.T) {
	b := setup(t)
	until := b.in(10 * 365 * 24 * time.Hour)
	created := b.send("POST", "/v1/schedules", `{"name":"Monday digest","cron":"0 9 * * MON","time_zone":"Europe/Berlin","campaign":null,"catch_up":"last","paused":false,"until":"`+until+`",
		"push":{"recipient":"user-1","channel":"sms","to":"+4512345678","category":"digest","message":{"title":"<Hi>"},"metadata":{"a":1.50},"on_conflict":"defer","expires_after":"4h"}}`).must(t, 201)
	id, path := created.at(t, "id").(string), created.header.Get("Location")
	if path != "/v1/schedules/"+id {
		t.Errorf("Location %s", path)
	}
	for name, want := range map[string]any{
		"name": "Monday digest", "status": "active", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "campaign": nil, "catch_up": "last", "paused": false, "until": until,
		"push": map[string]any{
			"recipient": "user-1", "channel": "sms", "to": "+4512345678", "category": "digest", "message": map[string]any{"title": "<Hi>"}, "metadata": map[string]any{"a": 1.5},
			"on_conflict": "defer", "expires_after": "4h",
		},
	} {
		if diff := cmp.Diff(want, created.at(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if got := b.send("GET", path, "").must(t, 200); cmp.Diff(got.body, created.body) != "" || !strings.Contains(got.text, `"title":"<Hi>"`) && !strings.Contains(got.text, `\u003cHi`) {
		t.Errorf("%s", got.text)
	}

	// The next times follow the clocks in Berlin.
	next := b.send("GET", path+"/next?n=100", "").must(t, 200).at(t, "next").([]any)
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil || len(next) != 100 || next[0] != created.at(t, "next_at") {
		t.Fatal(len(next), err)
	}
	for _, text := range next {
		at, err := time.Parse("2006-01-02T15:04:05Z", text.(string))
		if err != nil || at.In(berlin).Format("Mon 15:04:05") != "Mon 09:00:00" {
			t.Errorf("%s: %v", text, err)
		}
	}
	if got := b.send("GET", path+"/next", "").must(t, 200); len(got.at(t, "next").([]any)) != 5 {
		t.Errorf("%s", got.text)
	}

	// It can be changed, one member at a time.
	b.send("PATCH", path, `{"paused":true,"until":null}`).must(t, 200)
	changed := b.send("PATCH", path, `{"name":"Digest","cron":"@daily","push":{"recipient":"user-2","message":{}}}`).must(t, 200)
	for name, want := range map[string]any{
		"name": "Digest", "status": "paused", "cron": "@daily", "time_zone": "Europe/Berlin", "paused": true, "until": nil, "next_at": nil, "catch_up": "last",
		"push": map[string]any{"recipient": "user-2", "message": map[string]any{}},
	} {
		if diff := cmp.Diff(want, changed.at(t, name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	// A repeated request makes nothing.
	body := `{"cron":"@hourly","push":{"recipient":"user-3","message":{}}}`
	first := b.send("POST", "/v1/schedules", body, "Idempotency-Key", "k").must(t, 201)
	again := b.send("POST", "/v1/schedules", body, "Idempotency-Key", "k").must(t, 201)
	if first.at(t, "id") != again.at(t, "id") || again.header.Get("Idempotency-Replayed") != "true" || first.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%s, %s", first.text, again.text)
	}
	b.send("POST", "/v1/schedules", strings.Replace(body, "user-3", "user-4", 1), "Idempotency-Key", "k").must(t, 422, "idempotency-key-reused")

	// The list has pages.
	page := b.send("GET", "/v1/schedules?page_size=1", "").must(t, 200)
	rest := b.send("GET", "/v1/schedules?page_token="+page.at(t, "next_page_token").(string), "").must(t, 200)
	if len(page.at(t, "schedules").([]any)) != 1 || len(rest.at(t, "schedules").([]any)) != 1 || rest.at(t, "next_page_token") != "" ||
		page.at(t, "schedules", 0, "id") == rest.at(t, "schedules", 0, "id") {
		t.Errorf("%s, %s", page.text, rest.text)
	}

	// Deleted, it is gone.
	b.send("DELETE", path, "").must(t, 204)
	for _, r := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"PATCH", ""}, {"GET", "/next"}, {"GET", "/runs"}} {
		b.send(r[0], path+r[1], map[string]string{"PATCH": "{}"}[r[0]]).must(t, 404, "not-found")
	}
}

// TestSchedules_Runs reads the outcomes of occurrences.
func TestSchedules_Runs(t *testing.T) {
	b := setup(t)
	p := b.send("POST", "/v1/schedules", `{"cron":"@every 1m","push":{"recipient":"user-1","message":{}}}`).must(t, 201)
	path := "/v1/schedules/" + p.at(t, "id").(string)
	if got := b.send("GET", path+"/runs", "").must(t, 200); got.text != `{"runs":[],"next_page_token":""}`+"\n" && len(got.at(t, "runs").([]any)) != 0 {
		t.Errorf("%s", got.text)
	}
	b.exec(`UPDATE schedules SET began_at = n.began, done_at = n.began, next_at = n.began + interval '1 minute'
		FROM (SELECT date_trunc('second', clock_timestamp() - interval '181 seconds') AS began) n`)
	service := b.service(b.store, testPolicy())
	runner := recurring.NewRunner(b.store, service, campaignsOf(b.store, b.now), slog.New(slog.DiscardHandler), 0)
	for full := true; full; {
		var err error
		if full, err = runner.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	page := b.send("GET", path+"/runs?page_size=2", "").must(t, 200)
	rest := b.send("GET", path+"/runs?page_size=2&page_token="+page.at(t, "next_page_token").(string), "").must(t, 200)
	id, _ := page.at(t, "runs", 0, "push").(string)
	sent := b.send("GET", "/v1/pushes/"+id, "").must(t, 200)
	for i, r := range []struct {
		at   any
		want map[string]any
	}{
		{page.at(t, "runs", 0), map[string]any{"at": sent.at(t, "send_at"), "outcome": "submitted", "push": id, "campaign": nil, "reason": "", "rules": []any{}}},
		{page.at(t, "runs", 1), map[string]any{"outcome": "skipped", "push": nil, "campaign": nil, "reason": "missed", "rules": []any{}}},
		{rest.at(t, "runs", 0), map[string]any{"outcome": "skipped", "push": nil, "campaign": nil, "reason": "missed", "rules": []any{}}},
	} {
		got := r.at.(map[string]any)
		if i > 0 {
			delete(got, "at")
		}
		if diff := cmp.Diff(r.want, got); diff != "" {
			t.Errorf("run %d: %s", i, diff)
		}
	}
	if rest.at(t, "next_page_token") != "" || len(rest.at(t, "runs").([]any)) != 1 {
		t.Errorf("%s", rest.text)
	}
}

// TestSchedules_Invalid: everything that is wrong is said at once, and nothing is made.
func TestSchedules_Invalid(t *testing.T) {
	b := setup(t)
	made := b.send("POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"user-1","message":{}}}`).must(t, 201)
	path := "/v1/schedules/" + made.at(t, "id").(string)
	with := func(member string) string {
		return `{"cron":"@daily","push":{"recipient":"user-1","message":{}},` + member + `}`
	}
	for _, c := range []struct{ method, path, body, want string }{
		{"POST", "/v1/schedules", `{}`, "body.cron body.push"},
		{"POST", "/v1/schedules", `{"cron":"0 9 * *","time_zone":"Europe/Belin","campaign":"x","catch_up":"all","paused":1,"until":"2020-01-01T00:00:00Z","name":7,"more":1,
			"push":{"recipient":"","channel":"fax","send_at":"2030-01-01T00:00:00Z","local_time":"x","expires_after":"-1h","message":[],"latest":"soon"}}`,
			"body.campaign body.catch_up body.cron body.more body.name body.paused body.push.channel body.push.expires_after body.push.latest body.push.local_time body.push.message body.push.recipient body.push.send_at body.time_zone body.until"},
		{"POST", "/v1/schedules", with(`"time_zone":"Europe/Belin"`), "body.time_zone"},
		{"POST", "/v1/schedules", with(`"until":"2020-01-01T00:00:00Z"`), "body.until"},
		{"POST", "/v1/schedules", with(`"campaign":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"`), "body.campaign"},
		{"POST", "/v1/schedules", `{"cron":"@daily","push":null}`, "body.push"},
		{"POST", "/v1/schedules", `{"cron":"@daily","push":null,"campaign":null}`, "body.push"},
		{"POST", "/v1/schedules", `{"cron":"@daily","campaign":"x"}`, "body.campaign"},
		{"POST", "/v1/schedules", `{"cron":"@daily","campaign":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}`, "body.campaign"},
		{"POST", "/v1/schedules", `{"cron":"@daily","push":{"recipient":"user-1","channel":"fax","message":{}}}`, "body.push.channel"},
		{"POST", "/v1/schedules?x=1", `{"cron":"0 0 30 2 *","push":{"recipient":"user-1","message":{}}}`, "body.cron query.x"},
		{"POST", "/v1/schedules", `{"cron":"* * * * * *","push":{"recipient":"user-1","message":{}}}`, "body.cron"},
		{"POST", "/v1/schedules", `{"cron":"TZ=UTC 0 9 * * *","push":{"recipient":"user-1","message":{}}}`, "body.cron"},
		{"POST", "/v1/schedules", `{"cron":"` + strings.Repeat("*", 300) + `","push":{"recipient":"user-1","message":{}}}`, "body.cron"},
		{"PATCH", path, `{"cron":"@every 5s","push":{"recipient":"user-1"},"catch_up":null}`, "body.catch_up body.cron body.push.message"},
		{"PATCH", path, `{"push":null}`, "body.push"},
		{"PATCH", path, `{"campaign":"0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}`, "body.campaign"},
		{"PATCH", path, `{"time_zone":"Mars","id":"x"}`, "body.id body.time_zone"},
		{"PATCH", "/v1/schedules/x", `{}`, "path.id"},
		{"GET", path + "/next?n=101", "", "query.n"},
		{"GET", path + "/next?n=0", "", "query.n"},
		{"GET", path + "/runs?page_size=0&page_token=x", "", "query.page_size"},
		{"GET", "/v1/schedules?page_token=x", "", "query.page_token"},
	} {
		got := b.send(c.method, c.path, c.body).must(t, 422, "invalid-request")
		if found := locationsOf(t, any(got.body)); found != c.want {
			t.Errorf("%s %s %s: %s, want %s", c.method, c.path, c.body, found, c.want)
		}
	}
	if n := query[int](b, `SELECT count(*) FROM schedules WHERE updated_at = created_at`); n != 1 {
		t.Errorf("%d schedules as they were", n)
	}
	if got := b.send("POST", "/v1/schedules", with(`"time_zone":"Europe/Belin"`)); !strings.Contains(got.text, "Europe/Berlin") {
		t.Errorf("%s", got.text)
	}
	for n := range 20 {
		b.send("POST", "/v1/schedules", with(fmt.Sprintf(`"name":"%d"`, n))).must(t, map[bool]int{true: 409, false: 201}[n == 19])
	}
	b.send("POST", "/v1/schedules", with(`"name":"x"`)).must(t, 409, "too-many-schedules")
}

// TestSchedules_Campaign: a schedule has a campaign in the place of a push, and can change from one to the other.
func TestSchedules_Campaign(t *testing.T) {
	b := setup(t)
	draft := b.send("POST", "/v1/campaigns", `{"name":"Digest","message":{"title":"Hi"}}`).must(t, 201).at(t, "id").(string)
	made := b.send("POST", "/v1/schedules", `{"cron":"@daily","campaign":"`+draft+`"}`).must(t, 201)
	path := made.header.Get("Location")
	if made.at(t, "campaign") != draft || made.at(t, "push") != nil {
		t.Errorf("%s", made.text)
	}
	if got := b.send("PATCH", path, `{"campaign":null,"push":{"recipient":"user-1","message":{}}}`).must(t, 200); got.at(t, "campaign") != nil || got.at(t, "push", "recipient") != "user-1" {
		t.Errorf("%s", got.text)
	}
	b.send("PATCH", path, `{"campaign":"`+draft+`","push":null}`).must(t, 200)
	b.send("PATCH", path, `{"campaign":null}`).must(t, 422)
	if got := b.send("GET", path, "").must(t, 200); got.at(t, "campaign") != draft || got.at(t, "push") != nil {
		t.Errorf("%s", got.text)
	}
	b.exec(`UPDATE campaigns SET status = 'running'`)
	b.send("POST", "/v1/schedules", `{"cron":"@daily","campaign":"`+draft+`"}`).must(t, 422)
}

// TestSchedules_Scopes: to write includes to read, and not the other way round.
func TestSchedules_Scopes(t *testing.T) {
	b := setup(t)
	_, reads := b.newTenant("reader", push.ScopeCampaignsRead)
	_, writes := b.newTenant("writer", push.ScopeCampaignsWrite)
	body := `{"cron":"@daily","push":{"recipient":"user-1","message":{}}}`
	b.send("POST", "/v1/schedules", body, "Authorization", "Bearer "+reads).must(t, 403, "forbidden")
	b.send("POST", "/v1/schedules", body, "Authorization", "Bearer "+writes).must(t, 201)
	b.send("GET", "/v1/schedules", "", "Authorization", "Bearer "+reads).must(t, 200)
	b.send("GET", "/v1/schedules", "", "Authorization", "Bearer "+writes).must(t, 200)
	b.send("GET", "/v1/pushes", "", "Authorization", "Bearer "+writes).must(t, 403)
}
