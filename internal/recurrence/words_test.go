package recurrence

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		"0 9 * * MON":           "at 09:00, on Monday",
		"30 2 * * *":            "at 02:30",
		"* * * * *":             "every minute",
		"*/15 * * * *":          "every 15 minutes",
		"5 * * * *":             "at minute 5 of every hour",
		"0,30 9-17 * * MON-FRI": "every 30 minutes, in the hours 09 to 17, from Monday to Friday",
		"0 9,17 1,15 * *":       "at 09:00 and 17:00, on the 1st and 15th of the month",
		"0 0 1 JAN *":           "at 00:00, on the 1st of the month, in January",
		"0 8 1 * MON":           "at 08:00, on the 1st of the month and also on Monday",
		"0 */2 * * *":           "at minute 0, every 2 hours",
		"3,7 0-6 * * *":         "at the minutes 3 and 7, in the hours 00 to 06",
		"0 12 * 6-8 SAT,SUN":    "at 12:00, on Sunday and Saturday, in June to August",
		"0 12 2-4,22 * *":       "at 12:00, on the 2nd to 4th and 22nd of the month",
		"@daily":                "at 00:00",
		"@every 90m":            "every 1 hour and 30 minutes, counted from when it was made",
		"@every 2h":             "every 2 hours, counted from when it was made",
		"@every 61s":            "every 1 minute and 1 second, counted from when it was made",
		"@every 1h":             "every hour, counted from when it was made",
		"0 0 30 2 *":            "",
		"nonsense":              "",
	} {
		if got := Words(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
