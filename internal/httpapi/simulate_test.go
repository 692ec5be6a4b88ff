package httpapi

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// audience gives a draft an audience in CSV.
func (b *bundle) audience(campaign, text string) {
	b.t.Helper()
	b.send("PUT", "/v1/campaigns/"+campaign+"/audience", text, "Content-Type", "text/csv").must(b.t, 200)
}

// simulate simulates a campaign.
func (b *bundle) simulate(campaign string, headers ...string) reply {
	b.t.Helper()
	return b.send("POST", "/v1/campaigns/"+campaign+"/simulate", "", headers...)
}

// TestSimulate: the answer has the result that a start would have, as JSON or with a line for each recipient, and nothing is booked.
func TestSimulate(t *testing.T) {
	b := setup(t, quota.Rule{Name: "per-hour", Limit: 1, Window: time.Hour})
	start := b.now().Add(48 * time.Hour).Truncate(time.Hour)
	at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339) }
	b.send("POST", "/v1/pushes", pushBody("bert", at(30*time.Minute), "")).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("carl", at(-30*time.Minute), "")).must(t, 201)
	b.send("PUT", "/v1/recipients/dora", `{"opt_outs":{"categories":["marketing"]}}`).must(t, 201)
	id := b.campaign(`{"name":"sale","channel":"push","category":"marketing","send_at":"` + at(0) + `","on_conflict":"defer","latest":"` + at(time.Hour) + `","message":{"body":"Hi {{ name }}"}}`)
	b.audience(id, "recipient,name\nanna,Anna\nbert,Bert\ncarl,Carl\ndora,Dora\n")
	before := query[int](b, `SELECT count(*) FROM pushes`)
	// bert's push leaves no place up to latest; carl's push does, half an hour later. All of them could be sent before it.
	want := `{"recipients":4,"accepted":1,"deferred":1,"refused":1,"opted_out":1,"invalid":0,"by_rule":{"per-hour":2},` +
		`"delays":[{"up_to_seconds":60,"recipients":0},{"up_to_seconds":300,"recipients":0},{"up_to_seconds":900,"recipients":0},{"up_to_seconds":3600,"recipients":1},` +
		`{"up_to_seconds":14400,"recipients":0},{"up_to_seconds":86400,"recipients":0},{"up_to_seconds":null,"recipients":0}],"finishes_at":"` + at(30*time.Minute) + `","would_expire":0,"collides_with":[],` +
		`"better_starts":[{"send_at":"` + at(30*time.Minute) + `","accepted":2},{"send_at":"` + at(45*time.Minute) + `","accepted":2},{"send_at":"` + at(time.Hour) + `","accepted":2}]}` + "\n"
	if r := b.simulate(id).must(t, 200); r.text != want {
		t.Errorf("%s\nwant\n%s", r.text, want)
	}
	lines := b.simulate(id, "Accept", "application/x-ndjson").must(t, 200)
	if got := lines.header.Get("Content-Type"); got != "application/x-ndjson" {
		t.Errorf("Content-Type %s", got)
	}
	for _, line := range []string{
		`{"recipient":"anna","outcome":"accepted","send_at":"` + at(0) + `","reason":""}`,
		`{"recipient":"bert","outcome":"refused","send_at":null,"reason":"quota-exceeded"}`,
		`{"recipient":"carl","outcome":"deferred","send_at":"` + at(30*time.Minute) + `","reason":""}`,
		`{"recipient":"dora","outcome":"opted_out","send_at":null,"reason":"opted-out"}`,
	} {
		if !strings.Contains(lines.text, line+"\n") {
			t.Errorf("%s\nlacks %s", lines.text, line)
		}
	}
	if all := strings.SplitAfter(lines.text, "\n"); len(all) != 6 || all[4] != want {
		t.Errorf("the last line is not the totals: %q", all)
	}
	if after := query[int](b, `SELECT count(*) FROM pushes`); after != before {
		t.Errorf("%d pushes were booked", after-before)
	}
	if r := b.send("GET", "/v1/campaigns/"+id, "").must(t, 200); r.at(t, "status") != "draft" || r.at(t, "progress", "pending") != 4.0 {
		t.Error(r.text)
	}
}

// TestSimulate_Changed: with a body, the draft is simulated as a PATCH would make it, and stays what it is. What a PATCH refuses is
// refused.
func TestSimulate_Changed(t *testing.T) {
	b := setup(t, quota.Rule{Name: "per-hour", Limit: 1, Window: time.Hour})
	start := b.now().Add(48 * time.Hour).Truncate(time.Hour)
	at := func(d time.Duration) string { return start.Add(d).UTC().Format(time.RFC3339) }
	b.send("POST", "/v1/pushes", pushBody("bert", at(0), "")).must(t, 201)
	id := b.campaign(`{"channel":"push","send_at":"` + at(0) + `","message":{"body":"Hi"}}`)
	path := "/v1/campaigns/" + id + "/simulate"
	b.send("POST", path, `{"send_at":"`+at(time.Hour)+`"}`).must(t, 409, "campaign-state")
	b.audience(id, "recipient\nanna\nbert\n")
	for body, accepted := range map[string]float64{"": 1, "{}": 1, `{"send_at":"` + at(time.Hour) + `"}`: 2, `{"local_time":"` + start.Format("2006-01-02T15:04:05") + `","time_zone":"UTC"}`: 1, `{"spread":"3h","on_conflict":null}`: 1} {
		r := b.send("POST", path, body).must(t, 200)
		if body != `{"spread":"3h","on_conflict":null}` && r.at(t, "accepted") != accepted || r.at(t, "recipients") != 2.0 {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	if r := b.send("GET", "/v1/campaigns/"+id, "").must(t, 200); r.at(t, "send_at") != at(0) || r.at(t, "spread") != "0s" {
		t.Errorf("the draft was changed: %s", r.text)
	}
	for body, field := range map[string]string{
		`{"send_at":"` + at(-100*time.Hour) + `"}`: `"body.send_at"`, `{"send_at":7}`: `"body.send_at"`, `{"channel":"fax"}`: `"body.channel"`, `{"message":{"body":"{{"}}`: `"body.message.body"`,
	} {
		if r := b.send("POST", path, body).must(t, 422, "invalid-request"); !strings.Contains(r.text, field) {
			t.Errorf("%s: %s", body, r.text)
		}
	}
	if r := b.send("POST", path, `{"send_at":7,"channel":"fax"}`).must(t, 422, "invalid-request"); !strings.Contains(r.text, `"body.send_at"`) || !strings.Contains(r.text, `"body.channel"`) {
		t.Errorf("not all faults: %s", r.text)
	}
	b.send("POST", path, `[`).must(t, 400)
}

// TestSimulate_Accept: only who likes lines better than an object gets them.
func TestSimulate_Accept(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{"body":"Hello."}}`)
	b.audience(id, "recipient\nanna\n")
	for accept, lines := range map[string]bool{
		"application/x-ndjson": true, "application/json;q=0.5, application/x-ndjson": true, "application/x-ndjson, */*;q=0.8": true,
		"*/*": false, "application/json": false, "application/json, application/x-ndjson": false, "text/html": false, "application/x-ndjson;q=0": false, "": false,
	} {
		if r := b.simulate(id, "Accept", accept).must(t, 200); strings.HasPrefix(r.text, `{"recipient":`) != lines {
			t.Errorf("Accept %q: %s", accept, r.text)
		}
	}
}

// TestSimulate_Refused: what cannot be simulated is said before anything is read.
func TestSimulate_Refused(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{"body":"Hello."}}`)
	if r := b.simulate(id).must(t, 409, "campaign-state"); !strings.Contains(r.text, "the campaign has no audience; upload one first") || r.at(t, "campaign", "id") != id {
		t.Error(r.text)
	}
	b.audience(id, "recipient\nanna\n")
	b.simulate(id).must(t, 200)
	b.simulate(rest.ExampleID).must(t, 404, "not-found")
	b.simulate(id, "Authorization", "Bearer "+b.other).must(t, 404, "not-found")
	b.simulate("7").must(t, 422, "invalid-request")
	b.send("POST", "/v1/campaigns/"+id+"/simulate?fast=true", "").must(t, 422, "invalid-request")
	b.send("POST", "/v1/campaigns/"+id+"/simulate", `{"at":1}`).must(t, 422, "invalid-request")
	b.send("GET", "/v1/campaigns/"+id+"/simulate", "").must(t, 405, "method-not-allowed")
	for scope, status := range map[string]int{push.ScopeCampaignsRead: 200, push.ScopeCampaignsWrite: 200, push.ScopeRead: 403} {
		_, key, err := b.store.CreateKey(t.Context(), apikey.NewKey{Tenant: b.tenant, Scopes: []string{scope}})
		if err != nil {
			t.Fatal(err)
		}
		if r := b.simulate(id, "Authorization", "Bearer "+key); r.status != status {
			t.Errorf("with %s: %d %s", scope, r.status, r.text)
		}
	}
	b.exec(`UPDATE campaigns SET send_at = clock_timestamp() - interval '2 minutes'`)
	if r := b.simulate(id).must(t, 422, "invalid-request"); !strings.Contains(r.text, `"body.send_at"`) {
		t.Error(r.text)
	}
	b.exec(`UPDATE campaigns SET send_at = NULL, status = 'running', started_at = clock_timestamp()`)
	if r := b.simulate(id).must(t, 409, "campaign-state"); !strings.Contains(r.text, "the campaign is running; it can only be simulated while it is a draft") {
		t.Error(r.text)
	}
}

// TestSimulate_Turns: a tenant has one simulation at a time. Others are not kept waiting by it.
func TestSimulate_Turns(t *testing.T) {
	b := setup(t)
	turns := b.takeTurns()
	id := b.campaign(`{"message":{"body":"Hello."}}`)
	b.audience(id, "recipient\nanna\n")
	place, err := turns.simulations.Acquire(t.Context(), b.tenant, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer place.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // its key has to be looked up before
	defer cancel()
	r := httptest.NewRequest("POST", "/v1/campaigns/"+id+"/simulate", nil).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer "+b.key)
	w := httptest.NewRecorder()
	b.api.ServeHTTP(w, r)
	if w.Code != 429 || w.Header().Get("Retry-After") != "1" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	key := b.key
	b.key = b.other
	other := b.campaign(`{"message":{"body":"Hello."}}`)
	b.audience(other, "recipient\nanna\n")
	b.simulate(other).must(t, 200)
	b.key = key
	place.Release()
	b.simulate(id).must(t, 200)
}

// TestSimulate_Gone: a simulation ends when its caller goes, and one that breaks off after its first line has no end.
func TestSimulate_Gone(t *testing.T) {
	b := setup(t)
	id := b.campaign(`{"message":{"body":"Hello."}}`)
	var text strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&text, "\nuser-%d", i)
	}
	b.audience(id, "recipient"+text.String())
	ctx, leave := context.WithCancel(t.Context())
	r := httptest.NewRequest("POST", "/v1/campaigns/"+id+"/simulate", nil).WithContext(ctx)
	r.Header.Set("Authorization", "Bearer "+b.key)
	r.Header.Set("Accept", "application/x-ndjson")
	w := &leavingWriter{ResponseRecorder: httptest.NewRecorder(), leave: leave}
	func() {
		defer func() {
			if p := recover(); p == nil {
				t.Error("the answer has an end")
			}
		}()
		b.api.ServeHTTP(w, r)
	}()
	if n := strings.Count(w.Body.String(), "\n"); n < 1 || n >= 1200 {
		t.Errorf("%d lines", n)
	}
	b.simulate(id).must(t, 200) // its turn is over
}

// leavingWriter is the writer of a caller that disconnects after the first bytes.
type leavingWriter struct {
	*httptest.ResponseRecorder
	leave func()
}

func (w *leavingWriter) Write(b []byte) (int, error) {
	defer w.leave()
	return w.ResponseRecorder.Write(b)
}
