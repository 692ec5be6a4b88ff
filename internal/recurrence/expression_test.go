package recurrence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/recurrence"
)

var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

func parse(expression, in string, began time.Time) *recurrence.Expression {
	s, err := recurrence.Parse(expression, load(in), began)
	if err != nil {
		panic(err)
	}
	return s
}

// A digest at nine on Mondays keeps to the clocks of Berlin when they change.
func ExampleExpression_Take() {
	for _, at := range parse("0 9 * * MON", "Europe/Berlin", noon).Take(time.Date(2027, 3, 20, 0, 0, 0, 0, time.UTC), 2) {
		fmt.Println(at.UTC().Format(time.RFC3339), at.Format("15:04 MST"))
	}
	// Output:
	// 2027-03-22T08:00:00Z 09:00 CET
	// 2027-03-29T07:00:00Z 09:00 CEST
}

// TestExpression_ClockChanges: what is left out happens after the gap, and what comes twice once; but twice with * for the
// hour.
func TestExpression_ClockChanges(t *testing.T) {
	t.Parallel()
	spring, autumn := time.Date(2026, 3, 28, 23, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		expression, zone string
		after            time.Time
		want             []string // of the next five hours
	}{
		{"30 2 * * *", "Europe/Berlin", spring, []string{"01:00"}},
		{"0,30 2 * * *", "Europe/Berlin", spring, []string{"01:00"}},
		{"0 2,3 * * *", "Europe/Berlin", spring, []string{"01:00"}},
		{"0 * * * *", "Europe/Berlin", spring, []string{"00:00", "01:00", "02:00", "03:00", "04:00"}},
		{"30 2 * * *", "Europe/Berlin", autumn, []string{"00:30"}},
		{"30 2-3 * * *", "Europe/Berlin", autumn, []string{"00:30", "02:30"}},
		{"30 * * * *", "Europe/Berlin", autumn, []string{"22:30", "23:30", "00:30", "01:30", "02:30"}},
		{"0 */2 * * *", "Europe/Berlin", autumn, []string{"00:00", "03:00"}},
		{"@hourly", "Europe/Berlin", autumn, []string{"23:00", "00:00", "01:00", "02:00", "03:00"}},
		{"45 1 * * *", "Australia/Lord_Howe", time.Date(2026, 4, 4, 12, 0, 0, 0, time.UTC), []string{"14:45"}},
		{"45 * * * *", "Australia/Lord_Howe", time.Date(2026, 4, 4, 13, 0, 0, 0, time.UTC), []string{"13:45", "14:45", "15:15", "16:15", "17:15"}},
		{"0 9 30 12 *", "Pacific/Apia", time.Date(2011, 12, 30, 9, 0, 0, 0, time.UTC), []string{"10:00"}},
		{"0 9 * * *", "Asia/Kathmandu", time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC), []string{"03:15"}},
	} {
		var got []string
		for _, at := range parse(row.expression, row.zone, noon).Take(row.after, 10) {
			if !at.After(row.after.Add(5 * time.Hour)) {
				got = append(got, at.UTC().Format("15:04"))
			}
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s in %s: %v, want %v", row.expression, row.zone, got, row.want)
		}
	}
}

func TestParse_Refuses(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"":                                "1 to 256 characters",
		"   ":                             "1 to 256 characters",
		strings.Repeat("0,", 200) + "0":   "1 to 256 characters",
		"* * * * * *":                     "five fields",
		"0 9 * *":                         "five fields",
		"CRON_TZ=Asia/Tokyo 0 9 * * *":    "must not name a zone",
		"TZ=UTC":                          "must not name a zone",
		"0 0 30 2 *":                      "never happens",
		"0 0 31 4,6,9,11 *":               "never happens",
		"60 9 * * *":                      "not a cron expression; the minute cannot be 60: it is *, or of 0 to 59,",
		"0 24 * * *":                      "not a cron expression; the hour cannot be 24: it is *, or of 0 to 23,",
		"0 9 * * 7":                       "not a cron expression; the weekday cannot be 7: it is *, or of 0 to 6, from Sunday, or SUN to SAT,",
		"0 9 * * MOON":                    "the weekday cannot be MOON",
		"*/0 * * * *":                     "the minute cannot be */0",
		"0 9-8 * * *":                     "the hour cannot be 9-8",
		"0 9 32 * *":                      "the day of month cannot be 32: it is *, or of 1 to 31,",
		"0 9 0 MAI x":                     "the month cannot be MAI: it is *, or of 1 to 12 or JAN to DEC,",
		"1,,2 * * * *":                    "the minute cannot be 1,,2",
		",1 * * * *":                      "the minute cannot be ,1",
		"1, * * * *":                      "the minute cannot be 1,",
		"0 , * * *":                       "the hour cannot be ,",
		"0 1- * * *":                      "the hour cannot be 1-",
		"0 -5 * * *":                      "the hour cannot be -5",
		"0 *-5 * * *":                     "the hour cannot be *-5",
		"0 +5 * * *":                      "the hour cannot be +5",
		"0 0 */ * *":                      "the day of month cannot be */",
		"0 0 /2 * *":                      "the day of month cannot be /2",
		"0 0 1/+2 * *":                    "the day of month cannot be 1/+2",
		"0 0 * JAN-,,2 MON,":              "the month cannot be JAN-,,2: it is *, or of 1 to 12 or JAN to DEC, in lists such as a,b, ranges from the lower such as a-b, or steps such as */2; the weekday cannot be MON,",
		"@reboot":                         "not a cron expression",
		"@every":                          "with a span that has units",
		"@every 90":                       "with a span that has units",
		"@fortnightly":                    "@hourly, @daily",
		"@every 1s":                       "at least a minute",
		"@every 59s":                      "at least a minute",
		"@every 0s":                       "at least a minute",
		"@every -1h":                      "at least a minute",
		"@every 1m0.5s":                   "whole seconds",
		"@every 10000000000000000000000h": "not a cron expression",
		"@every often":                    "not a cron expression",
	} {
		s, err := recurrence.Parse(expression, time.UTC, noon)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: %v, %v, want %q", expression, s, err, want)
		}
	}
}

// TestExpression_LeapDay: it is eight years away where a century is no leap year.
func TestExpression_LeapDay(t *testing.T) {
	t.Parallel()
	got := parse("0 0 29 2 *", "UTC", noon).Take(time.Date(2096, 1, 1, 0, 0, 0, 0, time.UTC), 2)
	if len(got) != 2 || got[0].Year() != 2096 || got[1].Year() != 2104 {
		t.Errorf("%v", got)
	}
}

func TestExpression_Every(t *testing.T) {
	t.Parallel()
	s := parse("@every 90m", "Europe/Berlin", noon)
	want := []time.Time{noon.Add(90 * time.Minute), noon.Add(180 * time.Minute)}
	for _, after := range []time.Time{noon.AddDate(0, 0, -1), noon, noon.Add(time.Nanosecond)} {
		if got := s.Take(after, 2); !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Errorf("after %s: %v", after, got)
		}
	}
	if got, _ := s.Next(want[0]); !got.Equal(want[1]) {
		t.Errorf("after the first: %v", got)
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"0 9 * * MON", "@daily", "@every 1h", "*/15 0-5/2 1,15 JAN-MAR ?", "TZ= ", "@", "- - - - -"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := recurrence.Parse(text, load("Europe/Berlin"), noon)
		if err != nil {
			return
		}
		all := s.Take(noon, 3)
		for i, at := range all {
			if !at.After(noon) || i > 0 && at.Sub(all[i-1]) < time.Minute {
				t.Errorf("%q: %v", text, all)
			}
		}
	})
}
