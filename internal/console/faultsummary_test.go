package console

import (
	"strings"
	"testing"
	"time"
)

// summary returns the fault summary at the top of a page.
func (r reply) summary() string {
	_, text, _ := strings.Cut(r.Body, `<div class="problem" role="alert" tabindex="-1" autofocus>`)
	text, _, _ = strings.Cut(text, "</div>")
	return text
}

// TestFaults_Summary lists the faults of a form once at the top, with links to the fields, and each fault at its field. Faults without a field are
// listed at the top. No fault is repeated or lost.
func TestFaults_Summary(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Hour)
	for name, row := range map[string]struct {
		page    reply
		summary []string
		fields  []string
		once    string
	}{
		"two fields": {
			b.post("/console/pushes/new", "recipient", "", "channel", "push", "send_at", "yesterday", "message.title", "Hi"),
			[]string{"<strong>Nothing was changed.</strong> Check 2 fields: <a href=\"#f-recipient\">Person</a>, <a href=\"#f-send_at\">When</a>.</p>"},
			[]string{`aria-invalid="true" aria-describedby="fault-recipient hint-recipient"`, `aria-invalid="true" aria-describedby="fault-send_at hint-send_at"`},
			`"yesterday" is not a time`,
		},
		"no field": {
			b.post("/console/pushes/new", "recipient", "anna", "channel", "push", "on_conflict", "fight", "message.title", "Hi"),
			[]string{"<strong>Nothing was changed.</strong></p>", "<ul><li>on conflict: "}, nil, "on conflict: ",
		},
		"a choice": {
			b.post("/console/pushes/new", "recipient", "anna", "channel", "smoke", "message.title", "Hi"),
			[]string{"Check 1 field: <a href=\"#f-channel\">Channel</a>."}, []string{`<select id="f-channel" name="channel" aria-invalid="true" aria-describedby="fault-channel">`}, `id="fault-channel"`,
		},
		"a member of another name": {
			b.post("/console/pushes/"+one.ID+"/move", "move_to", "2000-01-01T00:00:00", "do", "move"),
			[]string{`<a href="#f-move_to">Move to</a>.`}, []string{`aria-describedby="fault-move_to hint-move_to"`}, "must not be more than a minute in the past",
		},
		"on the axis": {
			b.post("/console/recipients/user-1/move?move="+one.ID, "move_to", "2000-01-01T00:00:00"),
			[]string{`<a href="#f-move_to">New send time (UTC)</a>.`}, []string{`aria-describedby="fault-move_to"`}, "must not be more than a minute in the past",
		},
		"a filter": {
			b.get("/console/pushes?status=nonsense"),
			[]string{"<strong>This cannot be shown.</strong> Check 1 field: <a href=\"#f-status\">Status</a>."}, []string{`id="fault-status"`}, `id="fault-status"`,
		},
		"a group": {
			b.post("/console/settings/users", "email", "eve@example.com", "role", "king"),
			[]string{`<a href="#f-role">Role</a>.`}, []string{`<fieldset id="f-role" tabindex="-1" aria-describedby="fault-role"><legend>Role</legend>`}, `id="fault-role"`,
		},
		"a row": {
			b.post("/console/policy", "rules[0].name", "a", "rules[0].limit", "many", "rules[0].window", "1h", "do", "forecast"),
			[]string{`<a href="#rules%5b0%5d.limit">At most</a>`}, []string{`aria-invalid="true" aria-describedby="fault-rules[0].limit"`}, "must be a whole number",
		},
	} {
		if row.page.has(t, 422, row.fields...); strings.Count(row.page.Body, row.once) != 1 {
			t.Errorf("%s: %q is there %d times", name, row.once, strings.Count(row.page.Body, row.once))
		}
		for _, want := range row.summary {
			if !strings.Contains(row.page.summary(), want) {
				t.Errorf("%s: the summary lacks %q:\n%s", name, want, row.page.summary())
			}
		}
		for _, raw := range []string{"body.", "query.", "send_at:", "Correct the marked fields"} {
			if strings.Contains(row.page.summary(), raw) {
				t.Errorf("%s: the summary has %q:\n%s", name, raw, row.page.summary())
			}
		}
	}
	if r := b.post("/console/pushes/"+one.ID+"/move", "move_to", local(b.submit("user-1", 2*time.Hour).SendAt), "do", "move"); r.Status != 409 || !strings.Contains(r.summary(), "Send quota exceeded") {
		t.Errorf("what is no fault of a field is not told: %d %s", r.Status, r.summary())
	}
}
