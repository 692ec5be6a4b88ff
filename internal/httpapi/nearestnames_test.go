package httpapi

import (
	"strings"
	"testing"
)

// TestNearestNames checks that misspelt members, words and names are answered with the nearest one, wherever the request has them, and that
// others are not.
func TestNearestNames(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, tt := range []struct{ method, path, body, location, want string }{
		{"POST", "/v1/pauses", `{"scope": "chanel", "name": "push"}`, "body.scope", "must be one of: all, channel, category, campaign; the nearest name is channel"},
		{"POST", "/v1/pauses", `{"scope": "all", "resaon": "x"}`, "body.resaon", "unexpected property; the nearest name is reason"},
		{"POST", "/v1/pauses", `{"scope": "all", "colour": "x"}`, "body.colour", "unexpected property"},
		{"POST", "/v1/pauses", `{"scope": "everything"}`, "body.scope", "must be one of: all, channel, category, campaign"},
		{"POST", "/v1/pauses", `{"scope": "channel", "name": "psuh"}`, "body.name", "unknown channel; the nearest name is push. The channels are: push, sms"},
		{"POST", "/v1/pushes", `{"recipient": "a", "message": {}, "messge": {}}`, "body.messge", "unexpected property; the nearest name is message"},
		{"POST", "/v1/pushes", `{"recipient": "a", "message": {}, "channel": "Smss"}`, "body.channel", "unknown channel; the nearest name is sms. The channels are: push, sms"},
		{"PUT", "/v1/policy", `{"rules": [], "categories": {"code": {"elvel": "urgent"}}}`, "body.categories.code.elvel", "unexpected property; the nearest name is level"},
		{"PUT", "/v1/policy", `{"rules": [], "categories": {"code": {"level": "urgnt"}}}`, "body.categories.code.level", "must be one of: urgent, normal, bulk; the nearest name is urgent"},
		{"PUT", "/v1/policy", `{"rules": [{"name": "a", "limit": 1, "per": "wek"}]}`, "body.rules[0].per", "must be one of: hour, day, week, month; the nearest name is week"},
		{"GET", "/v1/pushes?staus=sent", "", "query.staus", "unexpected parameter; the nearest name is status"},
		{"GET", "/v1/pushes?status=snet", "", "query.status", "must be one of: scheduled, sending, sent, failed, canceled, expired; the nearest name is sent"},
	} {
		got := b.send(tt.method, tt.path, tt.body).must(t, 422)
		message := ""
		for _, e := range got.at(t, "errors").([]any) {
			if e := e.(map[string]any); e["location"] == tt.location {
				message = e["message"].(string)
			}
		}
		if message != tt.want {
			t.Errorf("%s: %s has %q, want %q (%s)", tt.body+tt.path, tt.location, message, tt.want, got.text)
		}
	}
	many := `{"scope": "all"` + strings.Repeat(`, "resaon": 1`, 20_000) + `}`
	if got := b.send("POST", "/v1/pauses", many); got.status != 422 && got.status != 413 {
		t.Errorf("many unknown members: %d", got.status)
	}
}
