package console

import (
	"encoding/json"
	"html"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestPolicy_Story: a draft is forecast before it can be saved; saving carries it on to what waits; another change in between is
// not overwritten; versions can be loaded again.
func TestPolicy_Story(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit("user-1", time.Hour)
	b.submit("user-1", 2*time.Hour)
	b.get("/console/policy").has(t, 200, "version 0", "the operator’s", `value="per-minute"`, "No changes yet")
	draft := []string{"if_version", "0", "rules[0].name", "daily", "rules[0].limit", "1", "rules[0].window", "24h", "rules[1].name", "", "rules[1].limit", "", "rules[1].window", "",
		"quiet_hours[0].name", "", "categories[0].name", "receipts", "categories[0].bypass", "yes", "default_zone", "Europe/Berlin"}
	forecast := b.post("/console/policy", append(draft, "do", "save")...) // not seen yet: a forecast first
	forecast.has(t, 200, "Preview", "scheduled message breaks", "daily: 1", "Publish", "rules[2].name")
	sum := regexp.MustCompile(`name="forecast_of" value="([0-9a-f]+)"`).FindStringSubmatch(forecast.Body)
	if sum == nil {
		t.Fatal("the form lacks the forecast draft")
	}
	b.post("/console/policy", "if_version", "0", "rules[0].name", "other", "rules[0].limit", "2", "rules[0].window", "24h", "do", "save", "forecast_of", sum[1]).has(t, 200, "All scheduled messages keep within the new limits")
	saved := b.post("/console/policy", append(draft, "do", "save", "forecast_of", sum[1], "apply", "cancel")...)
	b.follow(saved).has(t, 200, "Version 1 of the policy is active", "checked", `value="daily"`, `value="yes" checked`, "your own", "load version 1 into the editor")
	b.post("/console/policy", append(draft, "do", "save", "forecast_of", sum[1], "apply", "cancel")...).has(t, 412, "Another user changed this", "Reload the page", "Active: version 1", `value="daily"`)
	b.get("/console/policy?version=1").has(t, 200, "The editor shows version 1")
	b.get("/console/policy?version=7").has(t, 404)
	b.follow(b.post("/console/policy/delete")).has(t, 200, "The default policy is active again", "reset to default")
}

// TestPolicy_Faults: all that is wrong is said at once, at its field, and nothing that was typed is lost.
func TestPolicy_Faults(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := b.post("/console/policy", "if_version", "0", "rules[0].name", "", "rules[0].limit", "", "rules[1].name", "Bad Name", "rules[1].limit", "-4", "rules[1].window", "soon", "default_zone", "Mars/X", "do", "forecast")
	page.has(t, 422, `id="fault-rules[0].name"`, `id="fault-rules[0].limit"`, `id="fault-rules[0].window"`, `id="fault-default_zone"`, `value="Bad Name"`, `value="soon"`)
	b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "many", "categories[0].name", "c", "categories[0].reserve", "per-day", "do", "forecast").
		has(t, 422, "must be a whole number", "such as per-day=2", `id="fault-categories[0].reserve"`, `value="per-day"`)
	b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "2", "rules[0].window", "1h", "rules[1].name", "", "rules[1].zone", "Europe/Berlin",
		"quiet_hours[0].name", "", "quiet_hours[0].days", "sat", "categories[0].name", "b", "categories[0].reserve", "c=1", "categories[1].name", "", "categories[1].reserve", "a=1", "do", "forecast").
		has(t, 422, `id="fault-rules[1].limit"`, `value="Europe/Berlin"`, `value="sat"`, `id="fault-categories[1].name"`, `value="a=1"`)
	b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "2", "rules[0].window", "1h", "categories[0].name", "z", "categories[0].reserve", "c=1", "categories[1].name", "b", "do", "forecast").
		has(t, 422, `id="fault-categories[0].reserve"`, "c: there is no rule of this name")
	b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "many", "rules[0].window", "soon", "rules[0].channels", "push fax", "quiet_hours[0].name", "q", "quiet_hours[0].from", "1",
		"quiet_hours[0].until", "8:00", "quiet_hours[0].days", "mon, sun, never, soon", "categories[0].name", "c", "categories[0].reserve", "a=3", "do", "forecast").
		has(t, 422, `id="fault-rules[0].limit"`, `value="many"`, `id="fault-rules[0].window"`, `id="fault-rules[0].channels"`, `id="fault-quiet_hours[0].from"`,
			`id="fault-quiet_hours[0].days">“never” must be mon, tue, wed, thu, fri, sat or sun; “soon” must be`)
	b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "2", "rules[0].window", "1h", "categories[0].name", "b", "categories[1].name", "b", "categories[1].bypass", "yes", "do", "forecast").
		has(t, 422, `id="fault-categories[1].name"`, "is listed twice")
	if page := b.get("/console/policy"); strings.Contains(page.Body, "soon") {
		t.Error("a draft with faults was stored")
	}
}

// TestPolicy_DeletedInBetween: going back to the operator's policy does not undo a version that was not shown.
func TestPolicy_DeletedInBetween(t *testing.T) {
	t.Parallel()
	b := setup(t)
	put := func(limit int64) {
		t.Helper()
		if _, err := b.api.Policy.Put(t.Context(), client.NewPolicy{Rules: []client.NewRule{{Name: "daily", Limit: limit, Window: "24h"}}}, client.PolicyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	put(1)
	page := b.get("/console/policy")
	_, form, _ := strings.Cut(page.Body, `action="/console/policy/delete"`)
	seen := hidden(t, reply{Body: form}, "if_version")
	put(2)
	b.post("/console/policy/delete", "if_version", seen).has(t, 412, "version 2")
	b.get("/console/policy").has(t, 200, "version 2", "your own")
	b.follow(b.post("/console/policy/delete", "if_version", "2")).has(t, 200, "The default policy is active again")
}

// TestPolicy_LinkedByLog: the audit log leads to each version that can be loaded, however old, and else to the policy.
func TestPolicy_LinkedByLog(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 51 {
		if _, err := b.api.Policy.Put(t.Context(), client.NewPolicy{Rules: []client.NewRule{{Name: "daily", Limit: int64(i + 1), Window: "24h"}}}, client.PolicyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	b.follow(b.post("/console/policy/delete", "if_version", "51")).has(t, 200)
	for _, filter := range []string{"?action=policy.reset", "?action=policy.change&target=1", "?action=policy.change&target=51"} {
		page := b.get("/console/proof/log" + filter)
		link := regexp.MustCompile(`href="(/console/policy\?[^"]*|/console/policy)">\d+<`).FindStringSubmatch(page.Body)
		if link == nil {
			t.Fatalf("%s: there is no link: %s", filter, page.text())
		}
		b.get(html.UnescapeString(link[1])).has(t, 200)
	}
	b.get("/console/policy?version=1").has(t, 200, "The editor shows version 1")
	for _, none := range []string{"0", "52", "53", "one"} { // 52 is the operator's
		b.get("/console/policy?version="+none).has(t, 404, "The policy has no version "+none)
	}
}

// TestPolicy_Unchanged: a policy that is opened and saved is what it was, whatever it has.
func TestPolicy_Unchanged(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, document := range []string{
		`{"rules":[]}`,
		`{"rules":[],"categories":{"security":{"bypass":true,"counts":false},"ops":{"counts":false},"plain":{},"said":{"counts":true}}}`,
		`{"rules":[{"name":"none","limit":0,"window":"1m","shadow":true,"channels":["sms"]},
			{"name":"of-vips","limit":7,"per":"week","week_start":"sun","zone":"recipient","channels":["push","sms"],"categories":["vip customers","a,b"]},
			{"name":"monthly","limit":100000,"per":"month","zone":"Asia/Tokyo"}],
		  "quiet_hours":[{"name":"night","from":"22:00","until":"08:00","days":["fri","sat"],"zone":"recipient","action":"defer","channels":["push"],"categories":["vip customers","a,b","c"]},
			{"name":"noon","from":"12:00","until":"12:30"}],
		  "categories":{"vip customers":{"reserve":{"of-vips":2,"monthly":0}},"a,b":{"bypass":true},"c & d":{}},"default_zone":"Europe/Berlin"}`,
	} {
		var put client.NewPolicy
		testenv.Check(t, json.Unmarshal([]byte(document), &put))
		if _, err := b.api.Policy.Put(t.Context(), put, client.PolicyOptions{}); err != nil {
			t.Fatal(err)
		}
		stored := func() (all map[string]any) {
			t.Helper()
			if err := b.api.Get(t.Context(), "/v1/policy", nil, &all); err != nil {
				t.Fatal(err)
			}
			delete(all, "version")
			return all
		}
		before := stored()
		var want map[string]any
		if err := json.Unmarshal([]byte(document), &want); err != nil {
			t.Fatal(err)
		}
		if want["source"] = "tenant"; !reflect.DeepEqual(before, want) {
			t.Fatalf("%v is stored as %v", want, before)
		}
		forecast := b.post("/console/policy", append(filledIn(b.get("/console/policy")), "do", "forecast")...)
		forecast.has(t, 200, "All scheduled messages keep within the new limits")
		b.follow(b.post("/console/policy", append(filledIn(forecast), "do", "save")...)).has(t, 200, "of the policy is active")
		if after := stored(); !reflect.DeepEqual(before, after) {
			t.Errorf("a policy was\n%v, and is after a save without a change\n%v", before, after)
		}
	}
}

var (
	editorField = regexp.MustCompile(`(?s)<(input|textarea|select)([^>]* name="([^"]+)"[^>]*)>`)
	valueOf     = regexp.MustCompile(` value="([^"]*)"`)
	chosen      = regexp.MustCompile(`<option[^>]* selected[^>]*>([^<]*)<`)
)

// filledIn are the fields of the editor as a browser sends them, as names and values.
func filledIn(page reply) (fields []string) {
	_, form, _ := strings.Cut(page.Body, `<form method="post">`)
	form, _, _ = strings.Cut(form, "</form>")
	for _, at := range editorField.FindAllStringSubmatchIndex(form, -1) {
		kind, attributes, name, value := form[at[2]:at[3]], form[at[4]:at[5]], form[at[6]:at[7]], ""
		inside, _, _ := strings.Cut(form[at[1]:], "</"+kind+">")
		switch {
		case kind == "textarea":
			value = strings.ReplaceAll(inside, "\n", "\r\n")
		case kind == "select":
			if one := chosen.FindStringSubmatch(inside); one != nil {
				value = one[1]
			}
		case strings.Contains(attributes, `type="checkbox"`) && !strings.Contains(attributes, " checked"):
			continue
		default:
			value = valueOf.FindStringSubmatch(attributes)[1]
		}
		if name != "apply" {
			fields = append(fields, name, value)
		}
	}
	return fields
}
