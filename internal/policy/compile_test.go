package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/quota"
)

func read(t testing.TB, text string) policy.Document {
	t.Helper()
	var d policy.Document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// faults returns what is wrong with a document, one line each.
func faults(t testing.TB, text string) []string {
	t.Helper()
	_, err := read(t, text).Compile(policytest.Channels)
	if err == nil {
		return nil
	}
	var all invalid.FieldErrors
	if !errors.As(err, &all) {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range all {
		lines = append(lines, e.Error())
	}
	return lines
}

// TestCompile_Faults: one run finds everything.
func TestCompile_Faults(t *testing.T) {
	t.Parallel()
	got := faults(t, `{
		"rules": [
			{"name": "per-day", "limit": 3, "window": "24h", "per": "day"},
			{"name": "per-day", "limit": -1, "window": "1h"},
			{"name": "Per Hour", "window": "1 hour"},
			{"limit": 100001},
			{"name": "empty", "limit": 1, "window": "1h", "channels": [], "categories": []},
			{"name": "unknown", "limit": 1, "window": "1h", "channels": ["sms", "fax", ""]},
			{"name": "rolling", "limit": 1, "window": "1h", "zone": "UTC", "week_start": "monday"},
			{"name": "calendar", "limit": 2, "per": "fortnight", "zone": "Europe/Berln"},
			{"name": "week", "limit": 2, "per": "week", "week_start": "someday", "categories": ["news"]},
			{"name": "month", "limit": 2, "per": "month", "week_start": "sunday"}
		],
		"categories": {
			"alerts": {"reserve": {"month": 2, "week": 1, "yearly": 1}},
			"offers": {"reserve": {"month": 1, "rolling": -1}}
		},
		"quiet_hours": [
			{"name": "week", "from": "24:00", "until": "8:00", "days": ["mon", "noday"], "action": "drop"},
			{"from": "22:00", "until": "08:00", "days": [], "categories": [], "zone": "Berlin"}
		],
		"default_zone": "Mars/Olympus"
	}`)
	want := []string{
		`default_zone: Mars/Olympus: there is no time zone "Mars/Olympus"; give an IANA name`,
		`rules[0].per: day: must not be given together with window`,
		`rules[1].name: per-day: must be unique; rules[0] has it already`,
		`rules[1].limit: -1: must be a whole number from 0 to 100000`,
		`rules[2].name: Per Hour: must be 1 to 64 of a-z`,
		`rules[2].limit: is required`,
		`rules[2].window: 1 hour: must be a duration`,
		`rules[3].name: is required`,
		`rules[3].limit: 100001: must be a whole number`,
		`rules[3].window: is required`,
		`rules[4].channels: must not be empty`,
		`rules[4].categories: must not be empty`,
		`rules[5].channels[2]: must not be empty`,
		`rules[5].channels[1]: fax: there is no such channel; there are: sms, email`,
		`rules[6].zone: UTC: is only for rules with per`,
		`rules[6].week_start: monday: is only for rules with per: week`,
		`rules[7].per: fortnight: must be hour, day, week or month`,
		`rules[7].zone: Europe/Berln: there is no time zone "Europe/Berln"; the nearest name is Europe/Berlin`,
		`rules[8].week_start: someday: must be a day of the week`,
		`rules[9].week_start: sunday: is only for rules with per: week`,
		`categories.alerts.reserve.yearly: 1: there is no rule of this name`,
		`categories.offers.reserve.month: 1: keeps, together with the categories before it, 3 places of the rule's 2`,
		`categories.offers.reserve.rolling: -1: must not be negative`,
		`quiet_hours[0].name: week: must be unique; rules[8] has it already`,
		`quiet_hours[0].action: drop: must be reject or defer`,
		`quiet_hours[0].days[1]: noday: must be mon, tue`,
		`quiet_hours[0].from: 24:00: must be a time of day, from 00:00 to 23:59`,
		`quiet_hours[0].until: 8:00: must be a time of day, from 00:00 to 24:00`,
		`quiet_hours[1].categories: must not be empty`,
		`quiet_hours[1].name: is required`,
		`quiet_hours[1].zone: Berlin: there is no time zone "Berlin"; the nearest name is Europe/Berlin`,
		`quiet_hours[1].days: must not be empty`,
	}
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || !strings.HasPrefix(got[i], want[i]) {
			t.Fatalf("fault %d:\ngot:\n%s\nwant:\n%s", i, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestCompile_AlwaysQuiet: quiet hours leave a minute of the week to every kind of push.
func TestCompile_AlwaysQuiet(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ name, quiet, want string }{
		{"a night", `{"name": "a", "from": "22:00", "until": "08:00"}`, ""},
		{"all but a minute", `{"name": "a", "from": "00:01", "until": "00:00"}`, ""},
		{"all day", `{"name": "a", "from": "00:00", "until": "24:00"}`, "leave no minute of a week free"},
		{"from a time until the same", `{"name": "a", "from": "09:00", "until": "09:00"}`, "leave no minute of a week free"},
		{"all day, on six days", `{"name": "a", "from": "00:00", "until": "24:00", "days": ["mon", "tue", "wed", "thu", "fri", "sat"]}`, ""},
		{"all day, on seven days", `{"name": "a", "from": "12:00", "until": "12:00", "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}`, "no minute"},
		{"two halves", `{"name": "a", "from": "00:00", "until": "12:00"}, {"name": "b", "from": "12:00", "until": "00:00"}`, "no minute"},
		{"two halves with a gap", `{"name": "a", "from": "00:00", "until": "12:00"}, {"name": "b", "from": "12:01", "until": "00:00"}`, ""},
		{"two halves in other zones", `{"name": "a", "from": "00:00", "until": "12:00"}, {"name": "b", "from": "21:00", "until": "09:00", "zone": "Asia/Tokyo"}`, "no minute"},
		{"two halves of other channels", `{"name": "a", "from": "00:00", "until": "12:00", "channels": ["sms"]}, {"name": "b", "from": "12:00", "until": "00:00", "channels": ["email"]}`, ""},
		{"two halves of one channel", `{"name": "a", "from": "00:00", "until": "12:00", "channels": ["sms"]}, {"name": "b", "from": "12:00", "until": "00:00"}`, "no minute of a week free, for pushes on the channel sms"},
		{"two halves where two scopes meet", `{"name": "a", "from": "00:00", "until": "12:00", "channels": ["sms"]}, {"name": "b", "from": "12:00", "until": "00:00", "categories": ["news"]}`,
			"for pushes on the channel sms in the category news"},
		{"of a category that bypasses them", `{"name": "a", "from": "00:00", "until": "24:00", "categories": ["alerts"]}`, ""},
	} {
		got := faults(t, `{"categories": {"alerts": {"bypass": true}}, "quiet_hours": [`+row.quiet+`]}`)
		if row.want == "" && got != nil || row.want != "" && (len(got) != 1 || !strings.Contains(got[0], row.want)) {
			t.Errorf("%s: %v, want %q", row.name, got, row.want)
		}
	}
}

// TestCompile_AlwaysQuietAmongOthers: what is wrong elsewhere does not hide it.
func TestCompile_AlwaysQuietAmongOthers(t *testing.T) {
	t.Parallel()
	got := faults(t, `{"rules": [{"name": "a", "limit": -1, "window": "1h"}], "quiet_hours": [{"name": "b", "from": "00:00", "until": "24:00"}]}`)
	if len(got) != 2 || !strings.HasPrefix(got[0], "rules[0].limit") || !strings.HasPrefix(got[1], "quiet_hours: leave no minute") {
		t.Errorf("%v", got)
	}
}

func TestCompile_TooMany(t *testing.T) {
	t.Parallel()
	var d policy.Document
	limit := 1
	for i := range policy.MaxRules + 1 {
		d.Rules = append(d.Rules, policy.Rule{Name: fmt.Sprint("rule-", i), Limit: &limit, Window: "1h"})
	}
	for i := range policy.MaxQuiet + 1 {
		d.QuietHours = append(d.QuietHours, policy.QuietHours{Name: fmt.Sprint("night-", i), From: "22:00", Until: "23:00"})
	}
	d.Rules[0].Categories = slices.Repeat([]string{"news"}, policy.MaxScope+1)
	_, err := d.Compile(nil)
	want := "rules: must have at most 50 members, has 51; quiet_hours: must have at most 20 members, has 21; rules[0].categories: must have at most 64 members, has 65"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestTerms_Contract goes through a policy with everything, one push at a time.
func TestTerms_Contract(t *testing.T) {
	t.Parallel()
	terms, err := read(t, `{
		"rules": [
			{"name": "per-day", "limit": 3, "per": "day", "zone": "recipient"},
			{"name": "news-week", "limit": 1, "per": "week", "categories": ["news"]},
			{"name": "sms-hour", "limit": 0, "window": "1h", "channels": ["sms"], "shadow": true}
		],
		"categories": {
			"transactional": {"bypass": true, "counts": false},
			"receipts": {"reserve": {"per-day": 2}}
		},
		"quiet_hours": [{"name": "night", "from": "22:00", "until": "08:00", "zone": "recipient", "categories": ["news"], "action": "defer"}],
		"default_zone": "Europe/Berlin"
	}`).Compile(policytest.Channels)
	if err != nil {
		t.Fatal(err)
	}
	tokyo := policy.Person{Zone: location(t, "Asia/Tokyo")}
	at := func(text string) time.Time {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	news, receipt, transactional, other := quota.Kind{Category: "news"}, quota.Kind{Category: "receipts"}, quota.Kind{Category: "transactional"}, quota.Kind{}
	one := quota.NewTimeline([]quota.Booking{{At: at("2026-12-01T12:00:00+09:00"), Kind: other}, {At: at("2026-12-01T13:00:00+09:00"), Kind: transactional}})
	for _, row := range []struct {
		name   string
		person policy.Person
		kind   quota.Kind
		at     string
		want   []string
	}{
		{"one place of the day is left to all", tokyo, other, "2026-12-01T15:00:00+09:00", []string{"per-day"}},
		{"two are kept for receipts", tokyo, receipt, "2026-12-01T15:00:00+09:00", nil},
		{"the last second of the day", tokyo, other, "2026-12-01T23:59:59+09:00", []string{"per-day"}},
		{"the first second of the next", tokyo, other, "2026-12-02T00:00:00+09:00", nil},
		{"the first second of the day", tokyo, other, "2026-12-01T00:00:00+09:00", []string{"per-day"}},
		{"that day in Berlin", policy.Person{}, other, "2026-12-02T00:00:00+09:00", []string{"per-day"}},
		{"an own limit", policy.Person{Zone: tokyo.Zone, Limits: map[string]int{"per-day": 4}}, other, "2026-12-01T15:00:00+09:00", nil},
		{"what is transactional passes all", tokyo, transactional, "2026-12-01T15:00:00+09:00", nil},
		{"news at night", tokyo, news, "2026-12-02T22:00:00+09:00", []string{"night"}},
		{"news at night, on a full day", tokyo, news, "2026-12-01T07:59:59+09:00", []string{"per-day", "night"}},
		{"news in the morning", tokyo, news, "2026-12-02T08:00:00+09:00", nil},
		{"others at night", tokyo, other, "2026-12-02T22:00:00+09:00", nil},
	} {
		if got := names(terms.For(row.person, row.kind).Violations(one, at(row.at))); !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
	if got := names(terms.Shadow(tokyo, quota.Kind{Channel: "sms"}).Violations(one, at("2026-12-05T12:00:00Z"))); !slices.Equal(got, []string{"sms-hour"}) {
		t.Errorf("shadow: %v", got)
	}
	if next, ok := terms.For(tokyo, news).Next(one, at("2026-12-01T23:00:00+09:00"), quota.Second); !ok || !next.Equal(at("2026-12-02T08:00:00+09:00")) {
		t.Errorf("next: %s, %v", next, ok)
	}
}

// TestTerms_ReserveOfUncounted: places may be kept for a category that the rule does not count. Others do not get them either.
func TestTerms_ReserveOfUncounted(t *testing.T) {
	t.Parallel()
	terms, err := read(t, `{
		"rules": [{"name": "news-day", "limit": 3, "window": "24h", "categories": ["news"]}],
		"categories": {"alerts": {"reserve": {"news-day": 2}}}
	}`).Compile(policytest.Channels)
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	news := quota.Kind{Category: "news"}
	one := quota.NewTimeline([]quota.Booking{{At: noon, Kind: news}})
	for _, row := range []struct {
		kind quota.Kind
		line quota.Timeline
		want []string
	}{
		{news, quota.NewTimeline(nil), nil},
		{news, one, []string{"news-day"}},
		{quota.Kind{Category: "alerts"}, one, nil},
	} {
		if got := names(terms.For(policy.Person{}, row.kind).Violations(row.line, noon.Add(time.Hour))); !slices.Equal(got, row.want) {
			t.Errorf("%v: %v, want %v", row.kind, got, row.want)
		}
	}
}

// TestTerms_Plain checks that a policy without scopes is the same for all recipients, and costs no allocation.
func TestTerms_Plain(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true,
		`{"rules": [{"name": "a", "limit": 1, "window": "1m"}, {"name": "b", "limit": 5, "per": "day", "zone": "Asia/Tokyo"}]}`: true,
		`{"rules": [{"name": "a", "limit": 1, "per": "day", "zone": "recipient"}]}`:                                             false,
		`{"rules": [{"name": "a", "limit": 1, "window": "1m", "channels": ["sms"]}]}`:                                           false,
		`{"rules": [{"name": "a", "limit": 1, "window": "1m", "shadow": true}]}`:                                                false,
		`{"quiet_hours": [{"name": "a", "from": "22:00", "until": "08:00"}]}`:                                                   false,
		`{"categories": {"a": {"bypass": true}}}`:                                                                               false,
	} {
		terms, err := read(t, text).Compile(policytest.Channels)
		if err != nil || terms.Plain() != want {
			t.Errorf("%s: %v, %v", text, terms.Plain(), err)
			continue
		}
		k := quota.Kind{Channel: "sms", Category: "news"}
		if n := testing.AllocsPerRun(100, func() { terms.For(policy.Person{Zone: time.UTC}, k) }); want && n != 0 {
			t.Errorf("%s: %v allocations", text, n)
		}
	}
}

// TestCompile_Days: a window may be written in days.
func TestCompile_Days(t *testing.T) {
	t.Parallel()
	if wrong := faults(t, `{"rules": [{"name": "week", "limit": 3, "window": "7d"}, {"name": "long", "limit": 3, "window": "1d12h"}]}`); wrong != nil {
		t.Error(wrong)
	}
	want := []string{"rules[0].window: 366d: must be a duration from 1 millisecond to 1 year, like 90s, 15m, 24h or 7d"}
	if wrong := faults(t, `{"rules": [{"name": "year", "limit": 3, "window": "366d"}]}`); !slices.Equal(wrong, want) {
		t.Errorf("%q, want %q", wrong, want)
	}
}
