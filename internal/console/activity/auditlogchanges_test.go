package activity

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// TestChanges: values are shown, moments with their zone and distance, and where there are none, what has changed.
func TestChanges(t *testing.T) {
	t.Parallel()
	p := &frame.Page{Form: frame.Form{Times: frame.Times{Zones: frame.Zones{Mine: time.UTC}, Clock: time.Now}}}
	got := changes(p, map[string]any{
		"name": map[string]any{"to": "<b>"}, "send_at": map[string]any{"from": "2026-12-01T09:00:00Z", "to": "2026-12-01T10:00:00Z"},
		"limits": map[string]any{"from": map[string]any{"per-day": 20.0}}, "addresses": map[string]any{"changed": []any{"push", "sms"}}, "message": map[string]any{"changed": true},
	})
	if len(got) != 5 || got[0].Only != "has changed: push, sms" || got[1].From != "{&#34;per-day&#34;:20}" || got[1].To != "" || got[2].Only != "has changed" || got[3].To != "&lt;b&gt;" ||
		!strings.Contains(string(got[4].From), "2026-12-01 09:00:00") || !strings.Contains(string(got[4].To), "UTC") {
		t.Errorf("%+v", got)
	}
}

// TestActionWords_All: there are words for each action that the log can have.
func TestActionWords_All(t *testing.T) {
	t.Parallel()
	for _, action := range auditlog.Actions {
		if actionWords[action] == "" {
			t.Errorf("there are no words for %s", action)
		}
	}
	if len(actionWords) != len(auditlog.Actions) {
		t.Errorf("words for %d actions, and there are %d", len(actionWords), len(auditlog.Actions))
	}
}
