package console

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// TestWords_Problems explains refusals in the chosen zone and in words for people.
func TestWords_Problems(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("lea", time.Hour)
	clocks := one.SendAt.In(frame.LoadZone("Asia/Tokyo")).Format("2006-01-02 15:04:05") + " Asia/Tokyo (+09:00), in "
	b.cookies["sendquota_tz"] = "Asia/Tokyo"
	full := b.post("/console/pushes/new", "recipient", "lea", "channel", "push", "send_at", one.SendAt.In(frame.LoadZone("Asia/Tokyo")).Format("2006-01-02T15:04:05"), "message.title", "Hi")
	full.has(t, 409, "The rule per-minute is full: 1 in any 1 minute, used at "+clocks)
	past := b.post("/console/pushes/"+one.ID+"/move", "move_to", "2000-01-01T00:00:00", "do", "move")
	past.has(t, 422, "must not be more than a minute in the past")
	if _, err := b.api.Recipients.Put(t.Context(), "out", client.NewRecipient{OptOuts: &client.NewOptOuts{All: true}}); err != nil {
		t.Fatal(err)
	}
	out := b.post("/console/pushes/new", "recipient", "out", "channel", "push", "message.title", "Hi")
	out.has(t, 409, "The person has opted out of all messages.")
	for name, r := range map[string]reply{"full": full, "past": past, "out": out} {
		if found := regexp.MustCompile(`\dT\d\d:\d\d:\d\dZ|1m0s|send_at, `).FindString(tags.ReplaceAllString(r.summary(), "") + strings.Join(regexp.MustCompile(`class="fault"[^<]*`).FindAllString(r.Body, -1), "")); found != "" {
			t.Errorf("%s: a time is raw: %q", name, found)
		}
	}
	b.get("/console/pushes/abc").has(t, 404, "No such message", "Check that you copied all of it")
	b.get("/console/campaigns/abc").has(t, 404, "No such campaign")
	b.get("/console/recipients/"+strings.Repeat("a", 200)).has(t, 404, "No such recipient")
	b.get("/console/proof/log/export?format=xml").has(t, 422, "Unknown format", "csv or ndjson")
}

// TestWords_Rules: a rule of a calendar counts in its hours, days, weeks or months, and another one in any window.
func TestWords_Rules(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for rule, want := range map[string]string{
		`"window":"24h"`:                    "The rule seldom is full: 1 in any 1 day, ",
		`"per":"day"`:                       "The rule seldom is full: 1 in each day, ",
		`"per":"week","zone":"recipient"`:   "The rule seldom is full: 1 in each week, ",
		`"per":"month","zone":"Asia/Tokyo"`: "The rule seldom is full: 1 in each month, ",
	} {
		var policy client.NewPolicy
		if err := json.Unmarshal([]byte(`{"rules":[{"name":"seldom","limit":1,`+rule+`}]}`), &policy); err != nil {
			t.Fatal(err)
		}
		if _, err := b.api.Policy.Put(t.Context(), policy, client.PolicyOptions{}); err != nil {
			t.Fatal(err)
		}
		one := b.submit(fmt.Sprint("lea-", len(rule)), time.Hour)
		b.post("/console/pushes/new", "recipient", one.Recipient, "channel", "push", "send_at", one.SendAt.UTC().Format("2006-01-02T15:04:05"), "message.title", "Hi", "tz", "utc").has(t, 409, want)
	}
}

// TestWords_Forbidden: who may not open a page reads who may.
func TestWords_Forbidden(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.who.Visitor.Role, b.who.Visitor.Caller.Scopes = "viewer", []string{push.ScopeRead, push.ScopeQuota, push.ScopeCampaignsRead}
	r := b.get("/console/campaigns/new")
	r.has(t, 403, "Your role, viewer, cannot do this; editors, senders and admins can. An admin can give you another role.")
	if strings.Contains(r.Body, "campaigns:draft") {
		t.Error("the page names a scope")
	}
	b.get("/console/settings/keys").has(t, 403, "viewer, cannot do this")

	// An editor is told which schedule sends a draft, and is not offered to move what is booked.
	draft, err := b.api.Campaigns.Create(t.Context(), "", client.NewCampaign{Message: client.Message{"body": "Hi"}})
	if err != nil {
		t.Fatal(err)
	}
	made, err := b.api.Schedules.Create(t.Context(), "", client.NewSchedule{Cron: "@daily", TimeZone: "UTC", Campaign: draft.ID})
	if err != nil {
		t.Fatal(err)
	}
	b.who.Visitor.Role, b.who.Visitor.Caller.Scopes = "editor", user.Editor.Scopes()
	r = b.post("/console/campaigns/"+draft.ID+"/message", "channel", "push", "shown_for", "push", "message.body", "Ho")
	r.has(t, 403, "The campaign is the pattern of these schedules: "+made.ID+". Your role, editor, cannot do this; senders and admins can.")
	policy := b.post("/console/policy", "do", "forecast", "default_zone", "UTC")
	policy.has(t, 200, "Scheduled messages that break the new limits keep their time. Senders and admins can move or cancel them.")
	if strings.Contains(r.Body, "campaigns:write") || strings.Contains(policy.Body, `name="apply"`) {
		t.Errorf("%s %s", r.Body, policy.Body)
	}
}

// TestWords_Scopes shows the rights of each scope in the form of a key.
func TestWords_Scopes(t *testing.T) {
	t.Parallel()
	form := setup(t).get("/console/settings/keys")
	for _, scope := range push.Scopes {
		if !regexp.MustCompile(`> ` + scope + `</label> <span class="hint">[a-z]`).MatchString(form.Body) {
			t.Errorf("the form has no words for the scope %s", scope)
		}
	}
}

// TestTimeFields_Zone: each field for a time says whose clocks it means.
func TestTimeFields_Zone(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*/templates/*.html")
	if err != nil {
		t.Fatal(err)
	}
	fields := 0
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for rest := string(text); ; fields++ {
			before, after, found := strings.Cut(rest, "datetime-local")
			if !found {
				break
			}
			start := max(strings.LastIndex(before, `{{template "field"`), strings.LastIndex(before, "<label"), strings.LastIndex(before, "{{$.Label"))
			end, _, _ := strings.Cut(after, "\n")
			if field := before[max(0, start):] + end; start < 0 || !strings.Contains(field, ".FieldZone") && !strings.Contains(field, "Local time") {
				t.Errorf("%s: a field does not say its zone: %s", name, field)
			}
			rest = after
		}
	}
	if fields < 15 {
		t.Errorf("%d fields were checked", fields)
	}
}
