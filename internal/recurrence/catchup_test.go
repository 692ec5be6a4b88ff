package recurrence_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/recurrence"
)

// TestExpression_Due covers an hourly schedule that is checked at 18:00:05.
func TestExpression_Due(t *testing.T) {
	t.Parallel()
	hour := func(h int) time.Time { return noon.Add(time.Duration(h-12) * time.Hour) }
	query := recurrence.Query{Now: hour(18).Add(5 * time.Second), Grace: time.Minute, CatchUp: recurrence.Skip, Most: 100}
	with := func(change func(*recurrence.Query)) recurrence.Query {
		q := query
		change(&q)
		return q
	}
	for _, row := range []struct {
		name  string
		query recurrence.Query
		want  []string
	}{
		{"one is due", with(func(q *recurrence.Query) { q.After = hour(17) }), []string{"18:00 done"}},
		{"all is on record", with(func(q *recurrence.Query) { q.After = hour(18) }), nil},
		{"missed ones are skipped", with(func(q *recurrence.Query) { q.After = hour(15) }), []string{"16:00 skipped", "17:00 skipped", "18:00 done"}},
		{"the latest missed one is done", with(func(q *recurrence.Query) {
			q.After, q.CatchUp, q.Now = hour(15), recurrence.Last, hour(18).Add(-time.Second)
		}),
			[]string{"16:00 skipped", "17:00 done"}},
		{"it is done alone", with(func(q *recurrence.Query) { q.After, q.CatchUp = hour(15), recurrence.Last }),
			[]string{"16:00 skipped", "17:00 skipped", "18:00 done"}},
		{"the latest is missed itself", with(func(q *recurrence.Query) {
			q.After, q.CatchUp, q.Now = hour(15), recurrence.Last, hour(18).Add(61*time.Second)
		}),
			[]string{"16:00 skipped", "17:00 skipped", "18:00 done"}},
		{"so late is not missed", with(func(q *recurrence.Query) { q.After, q.Now = hour(17), hour(18).Add(time.Minute) }), []string{"18:00 done"}},
		{"a pause is not caught up", with(func(q *recurrence.Query) {
			q.After, q.CatchUp, q.Resumed = hour(15), recurrence.Last, hour(17).Add(time.Minute)
		}),
			[]string{"16:00 skipped", "17:00 skipped", "18:00 done"}},
		{"a pause that has just ended", with(func(q *recurrence.Query) { q.After, q.Resumed = hour(17), hour(18).Add(time.Second) }), []string{"18:00 skipped"}},
		{"the end is exclusive", with(func(q *recurrence.Query) { q.After, q.Until = hour(15), hour(18) }), []string{"16:00 skipped", "17:00 skipped"}},
		{"the latest before the end", with(func(q *recurrence.Query) { q.After, q.Until, q.CatchUp = hour(15), hour(18), recurrence.Last }),
			[]string{"16:00 skipped", "17:00 done"}},
		{"at most Most runs", with(func(q *recurrence.Query) { q.After, q.Most, q.CatchUp = hour(10), 2, recurrence.Last }), []string{"11:00 skipped", "12:00 skipped"}},
	} {
		var got []string
		for _, r := range parse("@hourly", "UTC", noon).Due(row.query) {
			got = append(got, r.At.Format("15:04")+map[bool]string{true: " done", false: " skipped"}[r.Done])
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: %v, want %v", row.name, got, row.want)
		}
	}
}

// TestExpression_Due_Parts checks that small parts give the same result as one large check.
func TestExpression_Due_Parts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := parse(rapid.SampledFrom([]string{"*/7 * * * *", "@hourly", "@every 11m"}).Draw(t, "expression"), "Europe/Berlin", noon)
		minutes := func(most int, name string) time.Duration {
			return time.Duration(rapid.IntRange(0, most).Draw(t, name)) * time.Minute
		}
		q := recurrence.Query{
			After: noon, Now: noon.Add(minutes(500, "now")), Grace: minutes(20, "grace"), Resumed: noon.Add(minutes(500, "resumed")),
			Until: noon.Add(minutes(600, "until")), CatchUp: rapid.SampledFrom([]recurrence.CatchUp{recurrence.Skip, recurrence.Last}).Draw(t, "catch up"), Most: 1000,
		}
		all := s.Due(q)
		var parts []recurrence.Due
		for q.Most = rapid.IntRange(1, 5).Draw(t, "most"); ; q.After = parts[len(parts)-1].At {
			part := s.Due(q)
			if len(part) == 0 {
				break
			}
			parts = append(parts, part...)
		}
		if !slices.Equal(all, parts) {
			t.Fatalf("%v in parts, %v at once", parts, all)
		}
	})
}
