package recurring

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store/schedules"
	"github.com/sendquota/sendquota/internal/suppression"
)

const (
	// interval is the time between two polls for work, in addition to the known times of occurrences.
	interval = time.Second
	// portion is the maximum number of schedules that are settled, and of occurrences that are submitted, in one
	// transaction.
	portion = 256
	// runsAtOnce is roughly the number of runs that one transaction records.
	runsAtOnce = 5000
	// Up to prompt after its time, an occurrence is submitted for that time, later for the present. A submit for more
	// than a minute ago would be refused.
	prompt = 30 * time.Second
	// Up to lateLimit after its begin, an occurrence is submitted. Later it counts as missed.
	lateLimit = 10 * time.Minute
)

// submitter submits pushes.
type submitter interface {
	Submit(ctx context.Context, tenant uuid.UUID, r schedule.Request, o schedule.Options) (booking.Decision, error)
	Submitted(ctx context.Context, tenant uuid.UUID, o schedule.Options) (id uuid.UUID, made bool, err error)
}

// campaigner starts copies of campaigns.
type campaigner interface {
	StartCopy(ctx context.Context, c broadcast.Copy) (done bool, err error)
	Campaign(ctx context.Context, tenant, id uuid.UUID) (broadcast.Campaign, error)
}

// runnerStore stores schedules and their occurrences.
type runnerStore interface {
	DueSchedules(ctx context.Context, turn *schedules.Turn, limit int) (schedules.Due, error)
	SettleSchedules(ctx context.Context, all []schedules.Settled) (n int, err error)
	LockOccurrences(ctx context.Context, turn *schedules.Turn, limit int) (*schedules.Begun, error)
	RecordOccurrences(ctx context.Context, b *schedules.Begun, runs []recurrence.Run) (recorded bool, err error)
}

// runner submits occurrences when they are due.
type runner struct {
	store     runnerStore
	pushes    submitter
	campaigns campaigner
	log       *slog.Logger
	kept      time.Duration
	turn      schedules.Turn
	wake      chan struct{}
	alarm     *time.Timer

	unfinished bool // there was no time to copy all audiences
}

// NewRunner returns a loop that submits the pushes, and starts the campaigns, of schedules when they are due. Every
// worker runs one. The outcomes of occurrences are kept for the given time; 0: forever.
func NewRunner(st runnerStore, pushes submitter, campaigns campaigner, log *slog.Logger, kept time.Duration) loop.Loop {
	r := &runner{store: st, pushes: pushes, campaigns: campaigns, log: log, kept: kept, wake: make(chan struct{}, 1)}
	return loop.Loop{Name: "run schedules", Interval: interval, Log: log, Pass: r.pass, Wake: r.wake}
}

// pass begins due occurrences, and submits begun ones, whichever worker began them.
func (r *runner) pass(ctx context.Context) (full bool, err error) {
	moreDue, next, err := r.begin(ctx)
	if err != nil {
		return false, fmt.Errorf("begin occurrences: %w", err)
	}
	if moreDue {
		failpoint.Hit(failpoint.OccurrenceBegun)
	}
	r.unfinished = false
	moreBegun, err := r.submitBegun(ctx)
	if err != nil {
		return false, fmt.Errorf("submit occurrences: %w", err)
	}
	if moreBegun {
		failpoint.Hit(failpoint.OccurrenceDone)
	}
	r.wakeIn(next)
	return moreDue || moreBegun || r.unfinished, nil
}

// begin begins due occurrences. next is the time until the next one is due.
func (r *runner) begin(ctx context.Context) (more bool, next time.Duration, err error) {
	due, err := r.store.DueSchedules(ctx, &r.turn, portion)
	if err != nil || len(due.Schedules) == 0 {
		return due.More, due.Next, err
	}
	var (
		settled []schedules.Settled
		runs    int
	)
	for _, p := range due.Schedules {
		if runs >= runsAtOnce { // the other schedules stay due
			break
		}
		one := schedules.Settled{Before: p}
		one.After, one.Runs = r.settle(p, due.Now)
		runs += len(one.Runs)
		settled = append(settled, one)
	}
	n, err := r.store.SettleSchedules(ctx, settled)
	return due.More || n > 0, due.Next, err
}

// wakeIn starts the next pass when an occurrence becomes due, if that is before the next tick.
func (r *runner) wakeIn(next time.Duration) {
	if r.alarm != nil {
		r.alarm.Stop()
	}
	if next > 0 && next < interval {
		r.alarm = time.AfterFunc(next, func() {
			select {
			case r.wake <- struct{}{}:
			default:
			}
		})
	}
}

// settle settles a schedule. If its zone is no longer known, or its expression is invalid, it is retried after an hour.
func (r *runner) settle(p recurrence.Schedule, now time.Time) (recurrence.Schedule, []recurrence.Run) {
	settled, runs, err := settle(p, now, r.kept)
	if err != nil {
		r.log.Error("could not read schedule; retrying in an hour", "schedule", p.ID, "error", err)
		p.NextAt = now.Add(time.Hour)
		return p, nil
	}
	return settled, runs
}

// submitBegun submits begun occurrences, and records the outcomes while it has them locked.
func (r *runner) submitBegun(ctx context.Context) (more bool, err error) {
	b, err := r.store.LockOccurrences(ctx, &r.turn, portion)
	if err != nil {
		return false, err
	}
	defer func() { b.Release(ctx, err) }()
	if len(b.Occurrences) == 0 {
		return b.More, nil
	}
	submitting, stop := context.WithDeadline(ctx, b.Deadline)
	defer stop()
	recorded, err := r.store.RecordOccurrences(ctx, b, r.submitAll(submitting, b.Occurrences))
	return b.More || recorded, err
}

// submitAll submits occurrences concurrently, so that the store can batch them.
func (r *runner) submitAll(ctx context.Context, all []recurrence.Occurrence) []recurrence.Run {
	runs := make([]recurrence.Run, len(all))
	var submitting sync.WaitGroup
	for i := range all {
		if all[i].Schedule.Campaign == uuid.Nil {
			submitting.Go(func() { runs[i] = r.submit(ctx, &all[i]) })
		}
	}
	submitting.Go(func() { r.startAll(ctx, all, runs) })
	submitting.Wait()
	return runs
}

// submit submits an occurrence, and returns the outcome. Without an outcome, the occurrence is to be submitted again.
func (r *runner) submit(ctx context.Context, o *recurrence.Occurrence) recurrence.Run {
	p, run := &o.Schedule, recurrence.Run{Schedule: o.Schedule.ID, At: o.At}
	options := optionsOf(o)
	if o.Begun > lateLimit && !(p.CatchUp == recurrence.Last && latest(o)) {
		id, made, err := r.pushes.Submitted(ctx, p.Tenant, options)
		switch {
		case err != nil:
			r.log.WarnContext(ctx, "could not find push of occurrence; will retry", "schedule", p.ID, "at", o.At, "error", err)
		case made:
			run.Outcome, run.Push = recurrence.Submitted, id
		default:
			run.Outcome, run.Reason = recurrence.Skipped, missed
		}
		return run
	}
	v, err := r.pushes.Submit(ctx, p.Tenant, requestOf(o), options)
	failpoint.Hit(failpoint.OccurrenceSubmitted)
	if err == nil {
		run.Outcome, run.Push = recurrence.Submitted, v.Push.ID
		return run
	}
	if refused(&run, err); run.Outcome == "" {
		r.log.WarnContext(ctx, "could not submit occurrence; will retry", "schedule", p.ID, "at", o.At, "error", err)
	}
	return run
}

// optionsOf returns the options of an occurrence. Every worker computes the same. No caller can send such a key.
func optionsOf(o *recurrence.Occurrence) schedule.Options {
	key := fmt.Sprintf("\x00schedule %s %d", o.Schedule.ID, o.At.Unix())
	hash := sha256.Sum256([]byte(key))
	return schedule.Options{IdempotencyKey: key, RequestHash: hash[:], Caps: o.Caps, RequestID: o.Schedule.ID.String()}
}

// latest reports whether no later occurrence is due.
func latest(o *recurrence.Occurrence) bool {
	times, err := timetable(&o.Schedule)
	if err != nil {
		return false
	}
	p := o.Schedule
	p.Done = o.At
	at := next(&p, times)
	return at.IsZero() || o.Late < at.Sub(o.At)
}

// requestOf returns the request of an occurrence. It is decided by Postgres' clock, because this worker's may be wrong.
func requestOf(o *recurrence.Occurrence) schedule.Request {
	p, now := &o.Schedule.Pattern, o.At.Add(o.Late)
	r := schedule.Request{
		Content:  push.Content{Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, To: p.To, Message: p.Message, Metadata: p.Metadata},
		Template: p.Template, Variables: p.Variables, Defer: p.OnConflict == "defer", Latest: p.Latest, ExpiresAt: p.ExpiresAt, Now: now,
	}
	from := now
	if o.Late <= prompt {
		r.SendAt, from = o.At, o.At
	}
	if at := from.Add(time.Duration(p.ExpiresAfter)); r.ExpiresAt.IsZero() {
		r.TTL = time.Duration(p.ExpiresAfter) // it moves along with a deferral
	} else if p.ExpiresAfter > 0 && at.Before(r.ExpiresAt) {
		r.ExpiresAt = at
	}
	return r
}

// refused sets the reason why an occurrence was refused permanently, as a problem of the API.
func refused(run *recurrence.Run, err error) {
	var (
		noPlace  *schedule.Refusal
		unwanted *schedule.OptedOut
		stopped  *schedule.Suppressed
		capped   *booking.Capped
		gone     *push.GoneError
		wrong    invalid.FieldErrors
	)
	switch {
	case errors.As(err, &noPlace):
		run.Outcome, run.Reason = recurrence.Refused, "quiet-hours"
		for _, v := range noPlace.Violations {
			run.Rules = append(run.Rules, v.Rule.Name)
			if !v.Rule.Quiet {
				run.Reason = "quota-exceeded"
			}
		}
		slices.Sort(run.Rules)
	case errors.As(err, &unwanted):
		run.Outcome, run.Reason = recurrence.Refused, booking.OptedOutReason
	case errors.As(err, &stopped):
		run.Outcome, run.Reason = recurrence.Refused, suppression.Failed
	case errors.As(err, &capped):
		run.Outcome, run.Reason, run.Rules = recurrence.Refused, "tenant-cap-exceeded", []string{capped.Cap}
	case errors.As(err, &gone): // an earlier worker has submitted it, long ago
		run.Outcome, run.Push = recurrence.Submitted, gone.ID
	case errors.As(err, &wrong):
		run.Outcome, run.Reason, run.Detail = recurrence.Refused, "invalid-request", wrong.WithoutValues()
	}
}
