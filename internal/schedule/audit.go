package schedule

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
)

// auditStore looks for broken guarantees in chunks. One worker at a time carries a pass to its end, or goes on where another
// one left it.
type auditStore interface {
	RunAudit(ctx context.Context, worker uuid.UUID, plan booking.AuditPlan, after func(booking.AuditChunk) error) (ended bool, err error)
	LastAudit(ctx context.Context) (*booking.AuditResult, error)
	CheckNames() []string // of all checks, those that find nothing included
}

// AuditorConfig is what an auditor has to know.
type AuditorConfig struct {
	Policy   booking.Terms // of tenants without a policy of their own
	Interval time.Duration // above 0
	Kept     booking.Kept  // what ended longer ago may be gone
}

// NewAuditor returns a loop that looks for broken guarantees in what was sent recently, or is to be sent soon. Every worker
// runs one; all of them together make one pass in about an interval. What a pass has found clean, and what nothing can
// change any more, is not looked at again; what waits, is under way, was sent a short time ago or is to be sent within a day
// is looked at in every pass.
//
// audited is told how many violations each check found in the last pass, those without any included, how long the pass
// took and when it ended, whichever worker made it. now is the clock, usually time.Now.
func NewAuditor(st auditStore, log *slog.Logger, audited func(violations map[string]int, took time.Duration, ended time.Time), now func() time.Time, cfg AuditorConfig) loop.Loop {
	a := &auditor{store: st, log: log, audited: audited, now: now, worker: uuid.New(), cfg: cfg}
	return loop.Loop{Name: "audit", Interval: cfg.Interval, Log: log, Delay: rand.N(cfg.Interval), Pass: a.pass}
}

type auditor struct {
	store   auditStore
	log     *slog.Logger
	audited func(violations map[string]int, took time.Duration, ended time.Time)
	now     func() time.Time
	worker  uuid.UUID
	cfg     AuditorConfig
	told    time.Time // when the pass ended that was told of last
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
			a.log.ErrorContext(ctx, "the audit left out a recipient, who takes too long; a push of theirs", "push", c.Skipped, "took", c.Took.String())
		case c.TooLong:
			a.log.WarnContext(ctx, "a chunk of the audit takes too long; it goes on with a smaller one", "took", c.Took.String())
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
	if last, err = a.store.LastAudit(ctx); err == nil && last != nil && last.Ended.After(a.told) {
		a.tell(ctx, *last, ended)
	}
	return false, err
}

// tell tells what the last pass has found. The worker that ended it logs that.
func (a *auditor) tell(ctx context.Context, last booking.AuditResult, log bool) {
	a.told = last.Ended
	violations := map[string]int{}
	for _, check := range a.store.CheckNames() {
		violations[check] = 0
		if found := last.Found[check]; found != nil {
			violations[check] = found.Violations
			if log {
				a.log.ErrorContext(ctx, "the audit found a guarantee broken", "check", check, "violations", found.Violations, "pushes", found.Pushes)
			}
		}
	}
	a.audited(violations, last.Ended.Sub(last.Began), last.Ended)
}

// auditPace spreads the chunks of a pass over most of an interval, so that they are an even load. It goes by how long the
// last pass read. A pass that reads for a fiftieth of that time, or for less, is over earlier.
type auditPace struct {
	now    func() time.Time
	spread time.Duration // a pass is over after that
	end    time.Time
	factor float64 // a pause is so many times as long as what was read
}

// The bounds of a pause.
const (
	gapOfAudit   = gapOfLook - 1
	longestPause = 20 * time.Second // so that no other worker takes the pass meanwhile
)

func newAuditPace(now func() time.Time, interval time.Duration, last *booking.AuditResult) auditPace {
	p := auditPace{now: now, spread: interval * 3 / 4, factor: gapOfAudit}
	if last != nil && last.Busy > 0 {
		p.factor = max(1, min(gapOfAudit, float64(p.spread)/float64(last.Busy)-1))
	}
	p.end = now().Add(p.spread)
	return p
}

// pause is how long to wait behind a chunk. A pass that is late waits as long as it reads.
func (p auditPace) pause(took time.Duration) time.Duration {
	if p.now().After(p.end) {
		return took
	}
	return min(longestPause, time.Duration(p.factor*float64(took)))
}
