package httpapi

import (
	"encoding/csv"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/loop"
)

// campaignWorker carries campaigns on.
func (b *bundle) campaignWorker() loop.Loop {
	return campaign.NewRunner(b.store, b.service(b.store, testPolicy()), slog.New(slog.DiscardHandler), campaign.RunnerConfig{Policy: testPolicy(), Parse: campaign.Parse})
}

// campaignFor drafts a campaign with an audience, and returns its path.
func (b *bundle) campaignFor(audience string) string {
	b.t.Helper()
	body := `{"name":"sale","send_at":"` + b.in(time.Hour) + `","message":{"title":"Hi {{ first_name }}"}}`
	path := "/v1/campaigns/" + b.send("POST", "/v1/campaigns", body).must(b.t, 201).at(b.t, "id").(string)
	b.send("PUT", path+"/audience", audience, "Content-Type", "text/csv").must(b.t, 200)
	return path
}

// TestCampaignActions: a campaign is started, paused, resumed and canceled; each can be repeated, and what its state does not allow is
// refused with the campaign.
func TestCampaignActions(t *testing.T) {
	b := setup(t)
	empty := "/v1/campaigns/" + b.send("POST", "/v1/campaigns", `{"name":"empty","message":{"title":"Hi"}}`).must(t, 201).at(t, "id").(string)
	if r := b.send("POST", empty+"/start", "").must(t, 409, "campaign-state"); r.at(t, "campaign", "status") != "draft" {
		t.Error(r.text)
	}
	path, w := b.campaignFor("recipient,first_name\nanna,Anna\n=bert,Bert\ncarl,\n"), b.campaignWorker()
	b.send("POST", path+"/pause", "").must(t, 409, "campaign-state")
	for _, act := range []struct{ action, status string }{
		{"start", "starting"}, {"start", "starting"}, {"pause", "pausing"}, {"pause", "pausing"}, {"resume", "starting"}, {"resume", "starting"},
	} {
		if r := b.send("POST", path+"/"+act.action, "").must(t, 202); r.at(t, "status") != act.status {
			t.Errorf("%s: %s", act.action, r.text)
		}
	}
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.send("PATCH", path, `{"name":"x"}`).must(t, 409, "campaign-state")
	b.send("PUT", path+"/audience", "recipient\nanna\n", "Content-Type", "text/csv").must(t, 409, "campaign-state")
	if r := b.send("POST", path+"/cancel", "").must(t, 202); r.at(t, "status") != "canceling" {
		t.Error(r.text)
	}
	b.send("POST", path+"/resume", "").must(t, 409, "campaign-state")
	b.send("POST", path+"/start?a=b", "").must(t, 422, "invalid-request")
	for _, action := range []string{"start", "pause", "resume", "cancel"} {
		if r := ask(t, b.api, "POST", path+"/"+action, "", "Authorization", "Bearer "+b.other); r.status != 404 {
			t.Errorf("another tenant may %s it: %d", action, r.status)
		}
	}
	past := b.campaignFor("recipient,first_name\nanna,Anna\n")
	b.advance(2 * time.Hour)
	if r := b.send("POST", past+"/start", "").must(t, 422, "invalid-request"); !strings.Contains(r.text, "send_at must not be more than a minute in the past") {
		t.Error(r.text)
	}
}

// TestCampaignRecipients: the outcome of each recipient is listed in the order of lines, by outcome, and exported.
func TestCampaignRecipients(t *testing.T) {
	b := setup(t)
	b.send("PUT", "/v1/recipients/out", `{"opt_outs":{"all":true}}`).must(t, 201)
	b.send("POST", "/v1/pushes", pushBody("full", b.in(time.Hour), "")).must(t, 201)
	path := b.campaignFor("recipient,first_name\nanna,Anna\n=bert,Bert\nout,O\nfull,F\n")
	outcomes := func(query string) (all []string, last reply) {
		for token := ""; ; {
			r := b.send("GET", path+"/recipients?page_size=1"+query+token, "").must(t, 200)
			for _, one := range r.at(t, "recipients").([]any) {
				v := one.(map[string]any)
				all = append(all, v["recipient"].(string)+" "+v["outcome"].(string)+" "+v["reason"].(string))
			}
			next := r.at(t, "next_page_token").(string)
			if next == "" {
				return all, r
			}
			token = "&page_token=" + next
		}
	}
	want := func(query string, want ...string) {
		t.Helper()
		if got, _ := outcomes(query); strings.Join(got, "; ") != strings.Join(want, "; ") {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	want("", "anna pending ", "=bert pending ", "out pending ", "full pending ")
	b.send("POST", path+"/start", "").must(t, 202)
	w := b.campaignWorker()
	for range 10 {
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want("", "anna scheduled ", "=bert scheduled ", "out opted_out "+booking.OptedOutReason, "full refused quota-exceeded")
	want("&outcome=refused", "full refused quota-exceeded")
	want("&recipient=full", "full refused quota-exceeded")
	want("&recipient=full&outcome=scheduled")
	want("&recipient=nobody")
	r := b.send("GET", path, "").must(t, 200)
	if r.at(t, "status") != "running" || r.at(t, "progress", "scheduled") != 2.0 || r.at(t, "progress", "refused") != 1.0 || r.at(t, "progress", "opted_out") != 1.0 {
		t.Error(r.text)
	}
	records, err := csv.NewReader(strings.NewReader(b.send("GET", path+"/export", "", "Accept", "text/csv").must(t, 200).text)).ReadAll()
	if err != nil || len(records) != 5 || records[2][0] != "'=bert" || records[4][6] != "per-minute" {
		t.Errorf("%q, %v", records, err)
	}
	lines := b.send("GET", path+"/export?outcome=scheduled", "").must(t, 200).text
	if strings.Count(lines, "\n") != 2 || !strings.Contains(lines, `"recipient":"=bert"`) {
		t.Error(lines)
	}
	for _, sub := range []string{"/recipients", "/export"} {
		b.send("GET", path+sub+"?outcome=x", "").must(t, 422, "invalid-request")
		if r := ask(t, b.api, "GET", path+sub, "", "Authorization", "Bearer "+b.other); r.status != 404 {
			t.Errorf("another tenant sees %s: %d", sub, r.status)
		}
	}
}
