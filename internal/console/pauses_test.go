package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// resumes returns the addresses of the buttons that resume sending.
func resumes(page reply) []string {
	return regexp.MustCompile(`/console/pauses/[0-9a-f-]+/resume`).FindAllString(page.Body, -1)
}

// pauses returns the pauses of the tenant.
func (b *bundle) pauses() (all []client.Pause) {
	b.t.Helper()
	for one, err := range b.api.Pauses.List(b.t.Context()) {
		if err != nil {
			b.t.Fatal(err)
		}
		all = append(all, one)
	}
	return all
}

// TestPauses_Story: sending of a channel is stopped and resumed. Meanwhile every page shows a banner, and a message shows why it waits.
func TestPauses_Story(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("anna", time.Hour)
	before := b.get("/console/pushes/"+one.ID).has(t, 200, `<a class="stop" href="/console/pauses">Stop sending</a>`)
	before.lacks(t, "Sending is stopped", "It waits", "/v1/pauses")
	page := b.get("/console/pauses").has(t, 200, "Nothing is stopped", "<option>push</option>", "<option>sms</option>", "Nothing is canceled", `aria-current="page">Stop sending`)
	page.lacks(t, "Sending is stopped")

	stop := []string{"zone", "UTC", "scope", "channel", "channel", "push", "category", "left over", "reason", "wrong text", "until", ""}
	b.follow(b.post("/console/pauses", stop...)).has(t, 200, "Sending of the channel push stops within two seconds", "the channel push", "wrong text", "user "+b.who.Caller.User.String(), "someone resumes it",
		"<strong>Sending is stopped:</strong> the channel push. <a href=\"/console/pauses\">Resume sending</a>")
	b.follow(b.post("/console/pauses", stop...)).has(t, 200, "stops within two seconds") // a double click
	if all := b.pauses(); len(all) != 1 || all[0].Scope != client.PauseScopeChannel || all[0].Name != "push" || all[0].Reason != "wrong text" || !all[0].Until.IsZero() {
		t.Fatalf("the pauses are %+v", all)
	}
	b.get("/console/pushes/"+one.ID).has(t, 200, "It waits, because sending is stopped: the channel push (“wrong text”), until someone resumes it")
	b.get("/console/pushes/none").has(t, 404, "Sending is stopped:")

	resume := resumes(b.get("/console/pauses"))
	if len(resume) != 1 {
		t.Fatalf("%d buttons", len(resume))
	}
	after := b.follow(b.post(resume[0])).has(t, 200, "Sending resumes", "Nothing is stopped")
	after.lacks(t, "Sending is stopped")
	b.follow(b.post(resume[0])).has(t, 200, "That stop has ended already")
	b.follow(b.get(resume[0])).has(t, 200, "Stop sending now")
	b.get("/console/pushes/"+one.ID).lacks(t, "It waits")
	if all := b.pauses(); len(all) != 0 {
		t.Errorf("the pauses are %+v", all)
	}
}

// TestPauses_Faults: errors are at their fields, all at once, and the typed values stay.
func TestPauses_Faults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, c := range []struct {
		form []string
		want []string
	}{
		{[]string{"scope", "", "until", "soon"}, []string{`id="fault-scope">choose what to stop<`, `id="fault-until">"soon" is not a time`, `value="soon"`}},
		{[]string{"scope", "channel", "reason", "kept", "until", "2001-01-01T00:00"}, []string{`id="fault-channel">choose the channel to stop<`, `id="fault-until">choose a time in the future<`, `value="kept"`, `<option value="channel" selected>`}},
		{[]string{"scope", "channel", "channel", "smss"}, []string{`id="fault-channel">unknown channel; the nearest name is sms`}},
		{[]string{"scope", "category"}, []string{`id="fault-category">choose the category to stop<`}},
		{[]string{"scope", "campaign", "campaign", "Winter"}, []string{`id="fault-campaign">must be the id of a campaign`}},
		{[]string{"scope", "campaign", "campaign", uuid.NewString()}, []string{`id="fault-campaign">there is no such campaign<`}},
		{[]string{"scope", "planet"}, []string{`id="fault-scope"`}},
		{[]string{"scope", "all", "reason", strings.Repeat("x", 501)}, []string{`id="fault-reason"`}},
	} {
		b.post("/console/pauses", append(c.form, "zone", "UTC")...).has(t, 422, c.want...)
	}
	if all := b.pauses(); len(all) != 0 {
		t.Errorf("the pauses are %+v", all)
	}
}

// TestPauses_Scopes: everything, a category and a campaign are stopped; the page of the campaign shows why it waits.
func TestPauses_Scopes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	campaign := b.draft(client.NewCampaign{Name: "Winter sale", SendAt: time.Now().Add(time.Hour), Message: client.Message{"title": "Hi"}}, "recipient\nanna\n")
	if _, err := b.api.Campaigns.Start(t.Context(), campaign.ID); err != nil {
		t.Fatal(err)
	}
	at := "/console/campaigns/" + campaign.ID
	b.get(at).lacks(t, "It waits")
	b.get("/console/pauses?scope=campaign&campaign="+campaign.ID).has(t, 200, `<option value="campaign" selected>`, `value="`+campaign.ID+`" selected>Winter sale<`)
	b.follow(b.post("/console/pauses", "scope", "category", "category", "news", "zone", "UTC")).has(t, 200, "Sending of the category news stops")
	b.get(at).has(t, 200, "Sending is stopped:").lacks(t, "It waits")
	until := time.Now().Add(time.Hour).UTC().Truncate(time.Minute)
	b.follow(b.post("/console/pauses", "scope", "campaign", "campaign", campaign.ID, "zone", "UTC", "until", until.Format("2006-01-02T15:04"))).has(t, 200, "Sending of the campaign stops", ">the campaign Winter sale</a>", `<a href="`+at+`">one campaign</a>, the category news`)
	b.get(at).has(t, 200, "It waits, because sending is stopped: one campaign, until ")
	if all := b.pauses(); !all[0].Until.Equal(until) {
		t.Errorf("until %s, want %s", all[0].Until, until)
	}
	b.follow(b.post("/console/pauses", "scope", "all", "zone", "UTC")).has(t, 200, "Sending of all messages stops", "Sending is stopped:</strong> everything, ")
	b.follow(b.post("/console/pauses", "scope", "channel", "channel", "sms", "zone", "UTC")).has(t, 200, "Sending is stopped:</strong> the channel sms, everything, ", " and 1 more.")
	waits := regexp.MustCompile(`It waits,.*`).FindString(b.get(at).Body)
	if !strings.Contains(waits, "one campaign") || !strings.Contains(waits, "everything") || strings.Contains(waits, "sms") || strings.Contains(waits, "news") {
		t.Errorf("the campaign says %q", waits)
	}
}

// TestPauses_Roles: viewers see what is stopped and cannot change it. Users who may not see pauses have no banner.
func TestPauses_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.follow(b.post("/console/pauses", "scope", "all", "reason", "wrong prices", "zone", "UTC"))
	resume := resumes(b.get("/console/pauses"))[0]
	b.who.Caller.Scopes, b.who.Role = []string{push.ScopePausesRead, push.ScopeRead}, "viewer"
	page := b.get("/console/pauses").has(t, 200, "wrong prices", "Sending is stopped:</strong> everything. <a href=\"/console/pauses\">See why</a>")
	page.lacks(t, "Resume sending", `class="stop"`, "Stop sending now", "<form method=\"post\" class=\"scopes\"")
	b.post("/console/pauses", "scope", "all").has(t, 403, "cannot do this")
	b.post(resume).has(t, 403, "cannot do this")
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/pauses").has(t, 403, "cannot do this").lacks(t, "Sending is stopped:")
	b.get("/console/settings/channels").has(t, 200).lacks(t, "Sending is stopped:", `class="stop"`)
	if all := b.pauses(); len(all) != 1 {
		t.Errorf("the pauses are %+v", all)
	}
}

// TestPauses_Operator: the operator's pause is marked and cannot be resumed.
func TestPauses_Operator(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	made, _, err := b.store.CreatePause(t.Context(), pause.Pause{ID: uuid.Must(uuid.NewV7()), Scope: pause.Channel, Name: "sms", Reason: "maintenance"}, pause.Given{})
	if err != nil {
		t.Fatal(err)
	}
	page := b.get("/console/pauses").has(t, 200, "the channel sms", "maintenance", "the operator", "only the operator can resume it", "Sending is stopped:")
	if found := resumes(page); len(found) != 0 {
		t.Errorf("the page has %s", found)
	}
	b.post("/console/pauses/"+made.ID.String()+"/resume").has(t, 403, "Only the operator can resume this")
	b.get("/console/pauses").has(t, 200, "maintenance")
}

// TestPauses_Held: a message that is due shows which pause holds it, also in the answer to “Why didn’t they get it?”.
func TestPauses_Held(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.follow(b.post("/console/pauses", "scope", "channel", "channel", "push", "zone", "UTC"))
	one, err := b.api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", Message: client.Message{"title": "Hello"}})
	if err != nil || !one.Paused {
		t.Fatalf("paused: %t, %v", one.Paused, err)
	}
	time.Sleep(time.Until(one.SendAt) + time.Second)                                                                                           // it is due, in whole seconds
	testenv.Exec(t, b.url, `UPDATE live SET pause_id = (SELECT id FROM pauses WHERE tenant_id = $1) WHERE tenant_id = $1`, [16]byte(b.tenant)) // as a worker does
	b.get("/console/pushes/"+one.ID).has(t, 200, "It waits, because sending is stopped: the channel push", "<dt>Held</dt><dd>sending of its channel was stopped from")
	why := url.Values{"recipient": {"anna"}, "at": {one.SendAt.UTC().Format("2006-01-02T15:04:05")}, "tz": {"utc"}}
	b.get("/console/why?"+why.Encode()).has(t, 200, "It waits, because sending of its channel was stopped. It is sent after sending resumes.")
}

// TestPauses_Live: the progress of an open campaign shows a stop that came later.
func TestPauses_Live(t *testing.T) {
	t.Parallel()
	b := setup(t)
	campaign := b.draft(client.NewCampaign{SendAt: time.Now().Add(time.Hour)}, "recipient\nanna\n")
	if _, err := b.api.Campaigns.Start(t.Context(), campaign.ID); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	server := httptest.NewServer(b.console)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/console/campaigns/"+campaign.ID+"/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	seen, part := "", make([]byte, 16<<10)
	for deadline := time.Now().Add(longest); !strings.Contains(seen, "It waits, because sending is stopped: everything"); {
		n, err := answer.Body.Read(part)
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%v after %s", err, seen)
		}
		if seen == "" {
			if strings.Contains(string(part[:n]), "It waits") {
				t.Fatal("it waits before the stop")
			}
			if _, err := b.api.Pauses.Create(t.Context(), client.NewPause{Scope: client.NewPauseScopeAll}); err != nil {
				t.Fatal(err)
			}
		}
		seen += string(part[:n])
	}
}

// TestPauses_Unknown: without an answer about pauses, pages have no banner, and are shown.
func TestPauses_Unknown(t *testing.T) {
	t.Parallel()
	b := setup(t)
	asked := 0
	api := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/pauses" {
			asked++
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		b.handler.ServeHTTP(w, r)
	})
	b.console = frame.New(api, b.who, allScreens(), menu, frame.Config{}).Handler()
	b.get("/console/settings/channels").has(t, 200, "push", "Stop sending").lacks(t, "Sending is stopped")
	if asked != 1 {
		t.Errorf("%d requests for one page", asked)
	}
	b.get("/console/pauses").has(t, 503)
	if asked != 2 {
		t.Errorf("the error page asks again: %d", asked-1)
	}
}
