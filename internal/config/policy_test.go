package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/policy"
)

// wholePolicy is a policy with everything that one can say.
const wholePolicy = `rules:
  - {name: per-minute, limit: 1, window: 1m}
  - {name: marketing-week, limit: 3, per: week, week_start: sunday, zone: recipient, categories: [marketing]}
  - {name: sms-day, limit: 2, per: day, zone: Europe/Berlin, channels: [sms]}
  - {name: trial, limit: 1, window: 6h, shadow: true}
categories:
  transactional: {bypass: true, counts: false}
  "a.b": {reserve: {per-minute: 1}}
quiet_hours:
  - {name: night, from: "22:00", until: "08:00", zone: recipient, days: [mon, tue], categories: [marketing], channels: [sms], action: defer}
default_zone: Asia/Tokyo
`

func TestReadPolicy(t *testing.T) {
	t.Parallel()
	want := policy.Document{
		Rules: []policy.Rule{
			{Name: "per-minute", Limit: new(1), Window: "1m"},
			{Name: "marketing-week", Limit: new(3), Per: "week", WeekStart: "sunday", Zone: "recipient", Categories: []string{"marketing"}},
			{Name: "sms-day", Limit: new(2), Per: "day", Zone: "Europe/Berlin", Channels: []string{"sms"}},
			{Name: "trial", Limit: new(1), Window: "6h", Shadow: true},
		},
		Categories: map[string]policy.Category{
			"transactional": {Bypass: true, Counts: new(false)}, "a.b": {Reserve: map[string]int{"per-minute": 1}},
		},
		QuietHours: []policy.QuietHours{{
			Name: "night", From: "22:00", Until: "08:00", Zone: "recipient", Days: []string{"mon", "tue"}, Categories: []string{"marketing"}, Channels: []string{"sms"}, Action: "defer",
		}},
		DefaultZone: "Asia/Tokyo",
	}
	for name, text := range map[string]string{"YAML": wholePolicy, "JSON": `{"rules": [
		{"name": "per-minute", "limit": 1, "window": "1m"},
		{"name": "marketing-week", "limit": 3, "per": "week", "week_start": "sunday", "zone": "recipient", "categories": ["marketing"]},
		{"name": "sms-day", "limit": 2, "per": "day", "zone": "Europe/Berlin", "channels": ["sms"]},
		{"name": "trial", "limit": 1, "window": "6h", "shadow": true}],
		"categories": {"transactional": {"bypass": true, "counts": false}, "a.b": {"reserve": {"per-minute": 1}}},
		"quiet_hours": [{"name": "night", "from": "22:00", "until": "08:00", "zone": "recipient", "days": ["mon", "tue"], "categories": ["marketing"], "channels": ["sms"], "action": "defer"}],
		"default_zone": "Asia/Tokyo"}`} {
		p, err := ReadPolicy("policy", []byte(text), []string{"sms"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, p.Document); diff != "" || p.Terms().DefaultZone().String() != "Asia/Tokyo" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestReadPolicy_Errors: everything that is wrong is said at once, by line.
func TestReadPolicy_Errors(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"rules": {"rules:\n- {name: a, limit: 1, window: 1m, per: day}\n- {name: a, limit: 1, per: day,\n   zone: Europe/Berln}\n- {name: b, limit: 1, window: 1m,\n  channels: [], categories: [1]}\n- {limit: x}\n", []string{
			`2: rules[0].per: "day": must not be given together with window: a rule is rolling or of a calendar`,
			`3: rules[1].name: "a": must be unique; rules[0] has it already`,
			`4: rules[1].zone: "Europe/Berln": there is no time zone "Europe/Berln"; the nearest name is Europe/Berlin`,
			`6: rules[2].categories[0]: 1: must be a string; put it in quotes`,
			`6: rules[2].channels: must not be empty; leave it out for all`,
			`7: rules[3].limit: "x": must be a whole number from 0 to 100000`,
			`7: rules[3].name: is required (appears in refusals; unique, 1 to 64 of a-z, 0-9, - and _)`,
			`7: rules[3].window: is required, like 1h; or per, for a rule of a calendar`,
		}},
		"reserves and quiet hours": {"rules: [{name: a, limit: 1, window: 1m}]\ncategories:\n  x:\n    reserve: {a: 1}\n  y:\n    reserve: {a: 1, b: 1}\nquiet_hours:\n- {name: a, from: \"1:00\",\n   until: \"25:00\", days: [], action: wait}\nzone: UTC\n", []string{
			`6: categories.y.reserve.a: 1: keeps, together with the categories before it, 2 places of the rule's 1`,
			`6: categories.y.reserve.b: 1: there is no rule of this name`,
			`8: quiet_hours[0].from: "1:00": must be a time of day, from 00:00 to 23:59`,
			`8: quiet_hours[0].name: "a": must be unique; rules[0] has it already`,
			`9: quiet_hours[0].action: "wait": must be reject or defer`,
			`9: quiet_hours[0].days: must not be empty; leave it out for every day`,
			`9: quiet_hours[0].until: "25:00": must be a time of day, from 00:00 to 24:00`,
			`10: zone: is not a setting; allowed: rules, categories, quiet_hours, default_zone`,
		}},
		"no minute is left": {"quiet_hours:\n- {name: a, from: \"00:00\", until: \"24:00\"}\n", []string{`1: quiet_hours: leave no minute of a week free`}},
	} {
		_, err := ReadPolicy("p.yaml", []byte(row.text), []string{"sms"})
		if err == nil {
			t.Fatalf("%s: no errors", name)
		}
		got := strings.Split(err.Error(), "\n")
		want := strings.Split("p.yaml:"+strings.Join(row.want, "\np.yaml:"), "\n")
		byLineAndField := cmp.Transformer("sorted", func(in []string) map[string]bool {
			all := map[string]bool{}
			for _, one := range in {
				all[one] = true
			}
			return all
		})
		if diff := cmp.Diff(want, got, byLineAndField); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestFile_Policy: the policy of the file has the channels of the file.
func TestFile_Policy(t *testing.T) {
	t.Parallel()
	c, errs := read("policy: {rules: [{name: a, limit: 2, window: 1h}, {name: b, limit: 1, per: month}, {name: c, limit: 1, window: 2h, channels: [sms]}, {name: d, limit: 1, window: 90h, shadow: true}]}\n" +
		"channels: {sms: {type: log}}\n")
	if errs != nil {
		t.Fatal(errs)
	}
	if c.Policy.Terms().Plain() {
		t.Error("the same rules hold for every push")
	}
	if reach := c.Policy.Terms().Reach(); reach < 31*24*time.Hour {
		t.Errorf("reach %s", reach)
	}
}
