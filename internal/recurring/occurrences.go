package recurring

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

const (
	// grace is the delay after which an occurrence counts as missed.
	grace = time.Minute
	// maxRuns is the maximum number of occurrences of a schedule that are recorded at once. After a long outage, other
	// schedules get a turn in between.
	maxRuns = 500
)

// The reasons of skipped occurrences.
const (
	missed = "missed" // no worker ran
	paused = "paused"
)

// timetable returns the times of a schedule.
func timetable(p *recurrence.Schedule) (*recurrence.Expression, error) {
	in, err := zone.Load(p.TimeZone)
	if err != nil {
		return nil, err
	}
	times, err := recurrence.Parse(p.Cron, in, p.Began)
	if err != nil {
		return nil, fmt.Errorf("cron %w", err)
	}
	return times, nil
}

// restart makes a schedule's occurrences begin after now.
func restart(p recurrence.Schedule, now time.Time) recurrence.Schedule {
	p.Began, p.Done = now.Truncate(time.Second), now
	return p
}

// next returns the first occurrence that is not recorded; zero: there is none.
func next(p *recurrence.Schedule, times *recurrence.Expression) time.Time {
	at, ok := times.Next(p.Done)
	if !ok || !p.Until.IsZero() && !at.Before(p.Until) {
		return time.Time{}
	}
	return at
}

// settle returns the outcomes of the occurrences of a schedule up to now, at most maxRuns, and the schedule with its
// next time. Occurrences older than kept are not recorded, unless kept is zero.
func settle(p recurrence.Schedule, now time.Time, kept time.Duration) (recurrence.Schedule, []recurrence.Run, error) {
	times, err := timetable(&p)
	if err != nil {
		return p, nil, err
	}
	if oldest := now.Add(-kept); kept > 0 && p.Done.Before(oldest) {
		p.Done = oldest
	}
	query := recurrence.Query{After: p.Done, Now: now, Grace: grace, Until: p.Until, CatchUp: p.CatchUp, Most: maxRuns}
	reason := missed
	if p.Paused {
		query.Resumed, reason = now, paused
	}
	var runs []recurrence.Run
	for _, r := range times.Due(query) {
		run := recurrence.Run{Schedule: p.ID, At: r.At.UTC()}
		if !r.Done {
			run.Outcome, run.Reason = recurrence.Skipped, reason
		}
		runs, p.Done = append(runs, run), r.At
	}
	p.NextAt = next(&p, times)
	return p, runs, nil
}
