package recurring

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

const (
	// grace is how late an occurrence can be found without having been missed.
	grace = time.Minute
	// mostRuns is how many occurrences of a schedule are put on record at once. After a long pause others have their turn
	// in between.
	mostRuns = 500
)

// The reasons of what is skipped.
const (
	missed = "missed" // nothing ran
	paused = "paused"
)

// timetable is when a schedule happens.
func timetable(p *push.Schedule) (*recurrence.Schedule, error) {
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

// restart has a schedule's occurrences begin after now.
func restart(p push.Schedule, now time.Time) push.Schedule {
	p.Began, p.Done = now.Truncate(time.Second), now
	return p
}

// next returns the first occurrence that is not on record; zero: there is none.
func next(p *push.Schedule, times *recurrence.Schedule) time.Time {
	at, ok := times.Next(p.Done)
	if !ok || !p.Until.IsZero() && !at.Before(p.Until) {
		return time.Time{}
	}
	return at
}

// settle says what becomes of the occurrences of a schedule up to now, of mostRuns at most, and when it is due again. Those
// that happened longer ago than their records are kept, unless that is zero, leave none.
func settle(p push.Schedule, now time.Time, kept time.Duration) (push.Schedule, []push.Run, error) {
	times, err := timetable(&p)
	if err != nil {
		return p, nil, err
	}
	if oldest := now.Add(-kept); kept > 0 && p.Done.Before(oldest) {
		p.Done = oldest
	}
	look := recurrence.Look{After: p.Done, Now: now, Grace: grace, Until: p.Until, CatchUp: recurrence.CatchUp(p.CatchUp), Most: mostRuns}
	reason := missed
	if p.Paused {
		look.Resumed, reason = now, paused
	}
	var runs []push.Run
	for _, r := range times.Runs(look) {
		run := push.Run{Schedule: p.ID, At: r.At.UTC()}
		if !r.Done {
			run.Outcome, run.Reason = push.RunSkipped, reason
		}
		runs, p.Done = append(runs, run), r.At
	}
	p.NextAt = next(&p, times)
	return p, runs, nil
}
