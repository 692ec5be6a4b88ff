package e2e

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestCampaigns_CommandLine runs campaigns from the command line: each recipient gets the message once, and the exit
// status reports the outcome.
func TestCampaigns_CommandLine(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	b.Start("worker")
	b.Env = append(b.Env, "SENDQUOTA_API="+b.api, "SENDQUOTA_API_KEY="+b.Key)
	list, message := filepath.Join(t.TempDir(), "list.csv"), filepath.Join(t.TempDir(), "message.json")
	write(t, list, "recipient;first_name\r\nanna;Anna\r\nben;\r\nanna;Again\r\n")
	write(t, message, `{"title": "Hi {{ first_name | default: 'there' }}"}`)
	nobody := filepath.Join(t.TempDir(), "nobody.csv")
	write(t, nobody, "name\nx\n")
	empty := filepath.Join(t.TempDir(), "empty.csv")
	write(t, empty, "recipient\n")
	run := func(args ...string) testenv.Output {
		return b.Exec("sendquota", append([]string{"campaign"}, args...)...)
	}
	for _, row := range []struct {
		name   string
		args   []string
		status int
		says   string
	}{
		{"simulated", []string{"run", list, "--message", "@" + message, "--simulate"}, 0, "accepted          2 at their time"},
		{"sent", []string{"run", list, "--message", "@" + message, "--wait"}, 0, "sent              2"},
		{"full", []string{"run", list, "--message", "@" + message, "--wait"}, 1, "refused           2"},
		{"no object", []string{"run", list, "--message", "[]"}, 2, "object of JSON"},
		{"no key", []string{"list", "--key-file", nobody + "x"}, 2, "--key-file"},
		{"no recipients", []string{"run", nobody, "--message", "@" + message}, 3, "recipient"},
		{"no time", []string{"run", list, "--message", "@" + message, "--send-at", "tomorrow"}, 2, "RFC 3339"},
		{"no file", []string{"run", filepath.Dir(list), "--message", "@" + message}, 2, "is a folder"},
		{"no lines", []string{"run", empty, "--message", "@" + message}, 3, "upload one first\nnothing was booked, and the draft is removed"},
		{"no campaign", []string{"pause", "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"}, 3, "404"},
	} {
		if o := run(row.args...); o.Status != row.status || !strings.Contains(o.Out+o.Err, row.says) {
			t.Errorf("%s: %+v, want %d and %q", row.name, o, row.status, row.says)
		}
	}
	once(t, b.provider.Arrivals(), 2)
	if left := testenv.Query[int](t, b.Database, `SELECT count(*) FROM campaigns WHERE status = 'draft'`); left != 0 {
		t.Errorf("%d drafts are left behind", left)
	}
	b.wantAudited()
}

// TestCampaigns_Schedule: a schedule starts a campaign that is like another one, and sends it to the same recipients.
func TestCampaigns_Schedule(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	b.Start("worker")
	api, err := client.New(b.api, b.Key, client.Config{HTTP: httpClient})
	testenv.Check(t, err)
	draft, err := api.Campaigns.Create(t.Context(), "", client.NewCampaign{Name: "Digest", Message: client.Message{"title": "Hi {{ first_name }}"}})
	testenv.Check(t, err)
	_, err = api.Campaigns.PutAudience(t.Context(), draft.ID, strings.NewReader("recipient,first_name\nanna,Anna\nben,Ben\n"), client.CSV)
	testenv.Check(t, err)
	s, err := api.Schedules.Create(t.Context(), "digest", client.NewSchedule{Cron: "@every 1m", Campaign: draft.ID})
	testenv.Check(t, err)
	for _, option := range []string{"--tenant=acme", "--json"} {
		if out := b.Tool("schedules", "list", option); !strings.Contains(out, draft.ID) {
			t.Errorf("the operator does not see the campaign: %s", out)
		}
	}
	testenv.Exec(t, b.Database, `UPDATE schedules SET began_at = n.at, done_at = n.at, next_at = n.at + interval '1 minute'
		FROM (SELECT date_trunc('second', clock_timestamp() - interval '58 seconds') AS at) n`)
	var made client.Campaign
	b.until("the campaign of the schedule has finished", func() bool {
		for run, err := range api.Schedules.ListRuns(t.Context(), s.ID) {
			testenv.Check(t, err)
			made, err = api.Campaigns.Get(t.Context(), run.Campaign)
			testenv.Check(t, err)
		}
		return made.Status == client.CampaignStatusFinished
	})
	if made.Progress.Sent != 2 || !strings.HasPrefix(made.Name, "Digest 20") || made.ID == draft.ID {
		t.Errorf("%+v", made)
	}
	for r, err := range api.Campaigns.ListRecipients(t.Context(), made.ID, client.CampaignRecipientsOptions{}) {
		testenv.Check(t, err)
		push, err := api.Pushes.Get(t.Context(), r.Push)
		testenv.Check(t, err)
		if !strings.HasPrefix(push.Message["title"].(string), "Hi ") || push.SendAt.Before(time.Now().Add(-5*time.Minute)) {
			t.Errorf("%+v", push)
		}
	}
	once(t, b.provider.Arrivals(), 2)
	b.wantAudited()
}
