package upkeep

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
)

// auditStore checks the guarantees in chunks. One worker at a time runs a pass. Another worker continues a pass that
// was interrupted.
type auditStore interface {
	RunAudit(ctx context.Context, worker uuid.UUID, plan booking.AuditPlan, after func(booking.AuditChunk) error) (ended bool, err error)
	LastAudit(ctx context.Context) (*booking.AuditResult, error)
	CheckNames() []string // the names of all checks, also of those that find nothing
}

// AuditorConfig configures an auditor.
type AuditorConfig struct {
	Policy   booking.Terms // of tenants without a policy of their own
	Interval time.Duration // above 0
	Kept     booking.Kept  // records that ended longer ago may be gone
}

// NewAuditor returns a loop that checks recent and upcoming sends for broken guarantees. Every worker runs the loop;
// together they make about one pass per interval. A pass checks pushes that are waiting, in progress, sent recently, or
// due within a day. It skips records that an earlier pass found clean and that can no longer change.
//
// After each pass, whichever worker made it, audited receives the number of violations per check (zeros included), how
// long the pass took, and when it ended. now is the clock, usually time.Now.
func NewAuditor(st auditStore, log *slog.Logger, audited func(violations map[string]int, took time.Duration, ended time.Time), now func() time.Time, cfg AuditorConfig) loop.Loop {
	a := &auditor{store: st, log: log, audited: audited, now: now, worker: uuid.New(), cfg: cfg}
	return loop.Loop{Name: "audit", Interval: cfg.Interval, Log: log, Delay: rand.N(cfg.Interval), Pass: a.pass}
}

type auditor struct {
	store    auditStore
	log      *slog.Logger
	audited  func(violations map[string]int, took time.Duration, ended time.Time)
	now      func() time.Time
	worker   uuid.UUID
	cfg      AuditorConfig
	reported time.Time // end of the last pass that was reported
}

func (a *auditor) pass(ctx context.Context) (full bool, err error) {
	last, err := a.store.LastAudit(ctx)
	if err != nil {
		return false, err
	}
	pace := newAuditPace(a.now, a.cfg.Interval, last)
	plan := booking.AuditPlan{Policy: a.cfg.Policy, Every: pace.spread, Back: a.cfg.Policy.Reach() + 2*a.cfg.Interval, Ahead: 24 * time.Hour, Kept: a.cfg.Kept}
	ended, err := a.store.RunAudit(ctx, a.worker, plan, func(c booking.AuditChunk) error {
		switch {
		case c.Skipped != uuid.Nil:
			a.log.ErrorContext(ctx, "audit skipped a recipient that takes too long to check", "push", c.Skipped, "took", c.Took.String())
		case c.TooLong:
			a.log.WarnContext(ctx, "audit chunk took too long; continuing with a smaller one", "took", c.Took.String())
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pace.pause(c.Took)):
			return nil
		}
	})
	if err != nil {
		return false, err
	}
	if last, err = a.store.LastAudit(ctx); err == nil && last != nil && last.Ended.After(a.reported) {
		a.report(ctx, *last, ended)
	}
	return false, err
}

// report passes the result of a pass to audited. The worker that ended the pass also logs it.
func (a *auditor) report(ctx context.Context, last booking.AuditResult, log bool) {
	a.reported = last.Ended
	violations := map[string]int{}
	for _, check := range a.store.CheckNames() {
		violations[check] = 0
		if found := last.Found[check]; found != nil {
			violations[check] = found.Violations
			if log {
				a.log.ErrorContext(ctx, "audit found violations of a guarantee", "check", check, "violations", found.Violations, "pushes", found.Pushes)
			}
		}
	}
	a.audited(violations, last.Ended.Sub(last.Began), last.Ended)
}

// auditPace spreads the chunks of a pass evenly over most of an interval, by the time that the last pass spent reading.
// A pass that reads for at most a fiftieth of that time ends earlier.
type auditPace struct {
	now    func() time.Time
	spread time.Duration // planned length of a pass
	end    time.Time
	factor float64 // length of a pause, as a multiple of the time spent reading
}

// The bounds of a pause.
const (
	auditGapFactor = gapFactor - 1
	longestPause   = 20 * time.Second // short enough that no other worker takes over the pass
)

func newAuditPace(now func() time.Time, interval time.Duration, last *booking.AuditResult) auditPace {
	p := auditPace{now: now, spread: interval * 3 / 4, factor: auditGapFactor}
	if last != nil && last.Busy > 0 {
		p.factor = max(1, min(auditGapFactor, float64(p.spread)/float64(last.Busy)-1))
	}
	p.end = now().Add(p.spread)
	return p
}

// pause returns how long to wait after a chunk that took a time. A pass that is late waits as long as it reads.
func (p auditPace) pause(took time.Duration) time.Duration {
	if p.now().After(p.end) {
		return took
	}
	return min(longestPause, time.Duration(p.factor*float64(took)))
}
