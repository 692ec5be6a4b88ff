package recurring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

// copyTime is about how long a pass copies audiences. The next pass continues, so that the pushes of other schedules do
// not wait for a million recipients.
const copyTime = 500 * time.Millisecond

// startAll starts the campaigns of occurrences, one after the other. Occurrences without time left come first in the
// next pass, which begins at once.
func (r *runner) startAll(ctx context.Context, all []recurrence.Occurrence, runs []recurrence.Run) {
	began := time.Now()
	for i := range all {
		if all[i].Schedule.Campaign == uuid.Nil {
			continue
		}
		for again := true; again; {
			runs[i], again = r.start(ctx, &all[i])
			if time.Since(began) > copyTime { // each pass goes a step at least
				r.unfinished = again || i+1 < len(all)
				return
			}
		}
	}
}

// start makes progress on the campaign of an occurrence, and returns the outcome. Without an outcome, it is to be
// called again: at once, if again is true.
func (r *runner) start(ctx context.Context, o *recurrence.Occurrence) (run recurrence.Run, again bool) {
	p, c := &o.Schedule, copyOf(o)
	run = recurrence.Run{Schedule: p.ID, At: o.At}
	if o.Begun > lateLimit && !(p.CatchUp == recurrence.Last && latest(o)) {
		if _, err := r.campaigns.Campaign(ctx, p.Tenant, c.ID); errors.Is(err, push.ErrNotFound) {
			run.Outcome, run.Reason = recurrence.Skipped, missed
			return run, false
		}
	}
	done, err := r.campaigns.StartCopy(ctx, c)
	switch {
	case done:
		run.Outcome, run.Campaign = recurrence.Submitted, c.ID
	case err != nil:
		if run.Reason, run.Detail = refusedCampaign(err); run.Reason != "" {
			run.Outcome = recurrence.Refused
		} else {
			r.log.WarnContext(ctx, "could not start campaign of occurrence; will retry", "schedule", p.ID, "at", o.At, "error", err)
		}
	}
	return run, !done && err == nil
}

// copyOf returns the copy of a campaign for an occurrence. Every worker computes the same. Its name ends with the day
// of the occurrence, by the schedule's zone.
func copyOf(o *recurrence.Occurrence) broadcast.Copy {
	p := &o.Schedule
	in, err := zone.Load(p.TimeZone)
	if err != nil {
		in = time.UTC
	}
	key := fmt.Sprintf("schedule %s %d", p.ID, o.At.Unix())
	return broadcast.Copy{
		ID: uuid.NewHash(sha256.New(), p.Tenant, []byte(key), 8), Tenant: p.Tenant, Of: p.Campaign, Suffix: o.At.In(in).Format(" 2006-01-02 15:04"), Caps: o.Caps,
	}
}

// refusedCampaign returns why a campaign can never be started, as a problem of the API and its detail; empty: it may
// still start.
func refusedCampaign(err error) (reason, detail string) {
	var (
		state  *broadcast.StateError
		wrong  invalid.FieldErrors
		capped *booking.Capped
	)
	switch {
	case errors.As(err, &capped):
		return "tenant-cap-exceeded", capped.Error()
	case errors.Is(err, push.ErrNotFound):
		return "not-found", ""
	case errors.As(err, &state):
		return "campaign-state", state.Detail
	case errors.Is(err, broadcast.ErrNothingToCopy):
		return "campaign-state", broadcast.ErrNothingToCopy.Error()
	case errors.Is(err, broadcast.ErrTooMany):
		return "too-many-campaigns", ""
	case errors.As(err, &wrong):
		return "invalid-request", wrong.WithoutValues()
	}
	return "", ""
}
