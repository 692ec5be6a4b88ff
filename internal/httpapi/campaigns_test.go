package httpapi

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
)

// campaign makes a draft, and returns its id.
func (b *bundle) campaign(body string) string {
	b.t.Helper()
	return b.send("POST", "/v1/campaigns", body).must(b.t, 201).at(b.t, "id").(string)
}

// TestCampaigns goes the way of a tenant with its draft.
func TestCampaigns(t *testing.T) {
	b := setup(t)
	soon, later := b.in(time.Hour), b.in(24*time.Hour)
	body := `{"name":"Black Friday","channel":"push","category":"marketing","send_at":"` + soon + `","local_time":null,"spread":"30m","on_conflict":"defer",
		"latest":"` + later + `","expires_after":"4h","message":{"title":"Hi {{ first_name | default: 'there' }}","body":"…"},"metadata":{}}`
	r := b.send("POST", "/v1/campaigns", body, "Idempotency-Key", "k").must(t, 201)
	id := r.at(t, "id").(string)
	if got := r.header.Get("Location"); got != "/v1/campaigns/"+id {
		t.Errorf("Location %s", got)
	}
	for member, want := range map[string]any{
		"name": "Black Friday", "status": "draft", "channel": "push", "category": "marketing", "send_at": soon, "local_time": nil, "time_zone": nil, "spread": "30m",
		"on_conflict": "defer", "latest": later, "expires_after": "4h", "audience": 0.0, "started_at": nil, "ended_at": nil,
	} {
		if got := r.at(t, member); got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	if !strings.Contains(r.text, `"message":{"title":"Hi {{ first_name | default: 'there' }}","body":"…"},"metadata":{},`) ||
		!strings.Contains(r.text, `"progress":{"audience":0,"pending":0,"scheduled":0,"refused":0,"opted_out":0,"invalid":0,"sent":0,"failed":0,"expired":0,"canceled":0,"deferred":0}`) {
		t.Error(r.text)
	}
	if again := b.send("POST", "/v1/campaigns", body, "Idempotency-Key", "k").must(t, 201); again.at(t, "id") != id || again.header.Get("Idempotency-Replayed") != "true" {
		t.Error(again.text)
	}
	b.send("POST", "/v1/campaigns", `{"message":{}}`, "Idempotency-Key", "k").must(t, 422, "idempotency-key-reused")
	if got := b.send("GET", "/v1/campaigns/"+id, "").must(t, 200); got.text != r.text {
		t.Errorf("%s, want %s", got.text, r.text)
	}

	// Members that are not sent stay, null is the default, and a local time replaces an instant.
	changed := b.send("PATCH", "/v1/campaigns/"+id, `{"local_time":"`+b.now().Add(72*time.Hour).UTC().Format("2006-01-02T15:04")+`","latest":null,"spread":null,"on_conflict":null,"name":null}`).must(t, 200)
	for member, want := range map[string]any{"name": "", "category": "marketing", "send_at": nil, "latest": nil, "spread": "0s", "on_conflict": "reject", "expires_after": "4h"} {
		if got := changed.at(t, member); got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	if zoned := b.send("PATCH", "/v1/campaigns/"+id, `{"time_zone":"Asia/Tokyo"}`).must(t, 200); zoned.at(t, "time_zone") != "Asia/Tokyo" {
		t.Error(zoned.text)
	}
	if instant := b.send("PATCH", "/v1/campaigns/"+id, `{"send_at":"`+soon+`"}`).must(t, 200); instant.at(t, "time_zone") != nil || instant.at(t, "local_time") != nil {
		t.Error(instant.text)
	}
	if none := b.send("PATCH", "/v1/campaigns/"+id, `{"send_at":null}`).must(t, 200); none.at(t, "send_at") != nil {
		t.Error(none.text)
	}

	// Only a draft can be changed or deleted.
	b.exec(`UPDATE campaigns SET status = 'running', started_at = now()`)
	for _, method := range []string{"PATCH", "DELETE"} {
		r := b.send(method, "/v1/campaigns/"+id, map[string]string{"PATCH": `{"name":"x"}`}[method]).must(t, 409, "campaign-state")
		if r.at(t, "campaign", "id") != id || r.at(t, "campaign", "status") != "running" || !strings.Contains(r.text, "the campaign is running; it can only be ") {
			t.Error(r.text)
		}
	}
	b.exec(`UPDATE campaigns SET status = 'draft', started_at = NULL`)

	// Nor while it is the pattern of a schedule.
	pattern := b.send("POST", "/v1/schedules", `{"cron":"@daily","campaign":"`+id+`"}`).must(t, 201)
	schedule := pattern.at(t, "id").(string)
	if r := b.send("DELETE", "/v1/campaigns/"+id, "").must(t, 409, "campaign-state"); r.at(t, "campaign", "id") != id || !strings.Contains(r.at(t, "detail").(string), schedule) {
		t.Error(r.text)
	}
	b.send("DELETE", "/v1/schedules/"+schedule, "").must(t, 204)
	b.send("DELETE", "/v1/campaigns/"+id, "").must(t, 204)
	for _, method := range []string{"GET", "PATCH", "DELETE"} {
		b.send(method, "/v1/campaigns/"+id, map[string]string{"PATCH": `{"name":"x"}`}[method]).must(t, 404, "not-found")
	}
}

// TestCampaigns_List: the latest first, by status, in pages that stay whole while campaigns come.
func TestCampaigns_List(t *testing.T) {
	b := setup(t)
	for i := range 5 {
		id := b.campaign(fmt.Sprintf(`{"name":"%d","message":{}}`, i))
		if i%2 == 1 {
			b.exec(`UPDATE campaigns SET status = 'running' WHERE id = $1`, id)
		}
	}
	names := func(query string) (all []string) {
		for token, first := "", true; first || token != ""; first = false {
			r := b.send("GET", "/v1/campaigns?page_size=2&"+query+"&page_token="+token, "").must(t, 200)
			for _, one := range r.at(t, "campaigns").([]any) {
				all = append(all, one.(map[string]any)["name"].(string))
			}
			token = r.at(t, "next_page_token").(string)
		}
		return all
	}
	for query, want := range map[string]string{"": "[4 3 2 1 0]", "status=draft": "[4 2 0]", "status=running": "[3 1]", "status=finished": "[]"} {
		if got := fmt.Sprint(names(query)); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	b.send("GET", "/v1/campaigns?status=late", "").must(t, 422, "invalid-request")
	token := b.send("GET", "/v1/campaigns?page_size=2", "").must(t, 200).at(t, "next_page_token").(string)
	b.send("GET", "/v1/campaigns?status=draft&page_token="+token, "").must(t, 422, "invalid-request")
}

// TestCampaigns_Invalid: everything that is wrong is said at once, and nothing is made.
func TestCampaigns_Invalid(t *testing.T) {
	b := setup(t)
	past, soon, later, far := b.in(-2*time.Minute), b.in(time.Hour), b.in(2*time.Hour), b.in(366*24*time.Hour)
	now := b.in(0)
	localPast := b.now().Add(-13 * time.Hour).UTC().Format("2006-01-02T15:04:05")
	localNear := b.now().Add(-11 * time.Hour).UTC().Format("2006-01-02T15:04:05")
	for name, tt := range map[string]struct {
		body string
		want []string // location and message
	}{
		"empty":   {`{}`, []string{"body.message is required"}},
		"unknown": {`{"message":{},"recipient":"a"}`, []string{"body.recipient unexpected property"}},
		"much": {`{"name":1,"message":{"title":7},"channel":"fax","category":"` + strings.Repeat("x", 65) + `","send_at":"` + past + `","spread":"25h","on_conflict":"maybe","expires_after":"0s","metadata":[]}`, []string{
			"body.name must be a string", "body.message.title must be a string", "body.category must have at most 64 bytes, has 65", "body.spread must be a time span from 0 seconds to 1 day, written like 500ms, 90s, 24h or 30d",
			"body.on_conflict must be one of: reject, defer", "body.expires_after must be a time span from 1 second to 1 year, written like 500ms, 90s, 24h or 30d", "body.metadata must be an object",
			"body.channel unknown channel; the channels are: push, sms", "body.send_at must not be more than a minute in the past; it is now NOW",
		}},
		"fraction":        {`{"message":{},"spread":"1500ms"}`, []string{"body.spread must be a time span of whole seconds, from 0 seconds to 1 day, written like 90s or 30m"}},
		"far":             {`{"message":{},"send_at":"` + far + `"}`, []string{"body.send_at must not be more than 1 year ahead; it is now NOW"}},
		"both times":      {`{"message":{},"send_at":"` + soon + `","local_time":"2027-01-01T09:00"}`, []string{"body.local_time must not be given together with send_at"}},
		"zone alone":      {`{"message":{},"time_zone":"UTC"}`, []string{"body.time_zone must not be given without local_time"}},
		"zone unknown":    {`{"message":{},"local_time":"` + localNear + `","time_zone":"Europe/Berln"}`, []string{`body.time_zone there is no time zone "Europe/Berln"; the nearest name is Europe/Berlin`}},
		"local past":      {`{"message":{},"local_time":"` + localPast + `"}`, []string{"body.local_time must not be more than a minute in the past; it is now NOW"}},
		"local zone past": {`{"message":{},"local_time":"` + localNear + `","time_zone":"UTC"}`, []string{"body.local_time must not be more than a minute in the past; it is now NOW"}},
		"latest early":    {`{"message":{},"send_at":"` + later + `","latest":"` + soon + `"}`, []string{"body.latest must not be before send_at, " + later}},
		"spread too far":  {`{"message":{},"send_at":"` + soon + `","latest":"` + soon + `","spread":"30m"}`, []string{"body.latest must not be before the end of the spread, " + b.in(90*time.Minute-time.Second)}},
		"latest past":     {`{"message":{},"latest":"` + past + `"}`, []string{"body.latest must be in the future; it is now NOW"}},
		"templates": {`{"message":{"title":"{{ a","body":"{% include 'x' %}","data":{"list":["{{ a | shout }}"]}},"spread":"1500ms"}`, []string{
			"body.message.title line 1: {{ is not closed by }}", "body.message.body line 1: include is not supported: a message has no other templates", "body.message.data.list[0] line 1: there is no filter shout",
			"body.spread must be a time span of whole seconds, from 0 seconds to 1 day, written like 90s or 30m",
		}},
		"template long": {`{"message":{"body":"` + strings.Repeat("x", 64<<10) + `","title":"x"}}`, []string{"body.message must have templates of at most 65536 bytes in all, has 65537"}},
		"message long":  {`{"message":{"data":[` + strings.Repeat("1,", 128<<10) + `1]}}`, []string{"body.message must have at most 262144 bytes, has 262156"}},
		"metadata":      {`{"message":{},"metadata":{"a":"` + strings.Repeat("x", 16<<10) + `"}}`, []string{"body.metadata must have at most 16384 bytes, has 16392"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := b.send("POST", "/v1/campaigns", tt.body).must(t, 422, "invalid-request")
			var got []string
			for _, one := range r.at(t, "errors").([]any) {
				e := one.(map[string]any)
				message := e["message"].(string)
				got = append(got, e["location"].(string)+" "+message)
				limit, limited := e["limit"].(string)
				if span, err := time.ParseDuration(limit); err == nil {
					limit = duration.Words(span)
				}
				now, compared := e["now"].(string)
				if _, said, is := strings.Cut(message, "it is now "); compared != is || now != said || limited != (strings.Contains(message, " ahead") || strings.Contains(message, ", 20")) || !strings.Contains(message, limit) {
					t.Errorf("the members of %v differ from its message", e)
				}
			}
			for i, want := range tt.want {
				message, open := strings.CutSuffix(want, "NOW")
				if i >= len(got) || open && (!strings.HasPrefix(got[i], message) || got[i] < message+now) || !open && got[i] != want {
					t.Errorf("%q, want %q", got, tt.want)
					break
				}
			}
			if len(got) != len(tt.want) {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	b.send("POST", "/v1/campaigns", `{"message":{"body":"`+strings.Repeat("x", 1<<20)+`"}}`).must(t, 413, "too-large")
	if n := query[int](b, `SELECT count(*) FROM campaigns`); n != 0 {
		t.Errorf("%d campaigns", n)
	}
	// Some clock still shows it.
	b.campaign(`{"message":{},"local_time":"` + localNear + `"}`)
	// A change is checked together with the unchanged members.
	id := b.campaign(`{"message":{},"send_at":"` + soon + `","latest":"` + later + `"}`)
	r := b.send("PATCH", "/v1/campaigns/"+id, `{"send_at":"`+b.in(3*time.Hour)+`","spread":"1s"}`).must(t, 422, "invalid-request")
	if want := `"location":"body.send_at","message":"must not be after latest, ` + later + `"`; !strings.Contains(r.text, want) || !strings.Contains(r.text, `"limit":"`+later+`"`) {
		t.Errorf("%s lacks %s", r.text, want)
	}
	b.advance(90 * time.Minute) // what was given before stays, and a name can be changed
	b.send("PATCH", "/v1/campaigns/"+id, `{"name":"x"}`).must(t, 200)
}

// TestCampaigns_Bound: a tenant has a maximum of campaigns that have not ended.
func TestCampaigns_Bound(t *testing.T) {
	b := setup(t)
	for range 20 {
		b.campaign(`{"message":{}}`)
	}
	b.send("POST", "/v1/campaigns", `{"message":{}}`).must(t, 409, "too-many-campaigns")
	b.exec(`UPDATE campaigns SET status = 'finished', ended_at = now() WHERE id = (SELECT min(id::text)::uuid FROM campaigns)`)
	b.campaign(`{"message":{}}`)
	b.send("POST", "/v1/campaigns", `{"message":{}}`).must(t, 409, "too-many-campaigns")
}
