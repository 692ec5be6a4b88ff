package config

import (
	"strings"
	"testing"
)

// TestPolicy_NearestNames checks that misspelt words of a policy in YAML are answered with the nearest one.
func TestPolicy_NearestNames(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"{rules: [], categories: {code: {level: urgnt}}}":                                        `"urgnt": must be urgent, normal or bulk; the nearest name is urgent`,
		"{rules: [], categories: {code: {elvel: urgent}}}":                                       "did you mean level?",
		"{rules: [{name: a, limit: 1, per: wek}]}":                                               "the nearest name is week",
		"{rules: [{name: a, limit: 1, per: week, week_start: mondya}]}":                          "the nearest name is monday",
		`{rules: [], quiet_hours: [{name: q, from: "22:00", until: "23:00", action: rejcet}]}`:   "the nearest name is reject",
		`{rules: [], quiet_hours: [{name: q, form: "22:00", until: "23:00"}]}`:                   "did you mean from?",
		`{rules: [], quiet_hours: [{name: q, from: "22:00", until: "23:00", action: postpone}]}`: "must be reject or defer",
	} {
		_, err := ReadPolicy("policy.yaml", []byte(text), []string{"push"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
