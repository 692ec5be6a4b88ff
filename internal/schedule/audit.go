package schedule

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/quota"
)

// auditStore looks for broken guarantees among what was sent, or is to be sent, between two times, and reports whether
// it ran: two audits never run at the same time.
type auditStore interface {
	AuditAlone(ctx context.Context, policy quota.Policy, since, until time.Time, found func(check string, push uuid.UUID)) (ran bool, err error)
	CheckNames() []string // of all checks, those that find nothing included
}

// Auditor looks for broken guarantees in what was sent recently, or is to be sent soon. Every worker runs one; two
// never look at the same time.
type Auditor struct {
	Store    auditStore
	Log      *slog.Logger
	Policy   quota.Policy
	Interval time.Duration // above 0
	// Audited is told how many violations each check has found, those without any included, and how long the audit
	// took.
	Audited func(violations map[string]int, took time.Duration)
}

// named is how many pushes the log names for each check.
const named = 10

// Run audits at every interval until ctx ends, the first time after a random part of it: so that workers that start
// together do not meet.
func (a *Auditor) Run(ctx context.Context) error {
	return loop.Loop{Name: "audit", Interval: a.Interval, Log: a.Log, Pass: a.Pass, Delay: rand.N(a.Interval)}.Run(ctx)
}

// Pass audits once, unless another worker is at it. What the last passes have looked at is looked at again, as far back
// as a window reaches.
func (a *Auditor) Pass(ctx context.Context) (full bool, err error) {
	began := time.Now()
	violations, pushes := map[string]int{}, map[string][]uuid.UUID{}
	for _, check := range a.Store.CheckNames() {
		violations[check] = 0
	}
	since, until := began.Add(-a.Policy.Reach()-2*a.Interval), began.Add(24*time.Hour)
	ran, err := a.Store.AuditAlone(ctx, a.Policy, since, until, func(check string, id uuid.UUID) {
		if violations[check]++; violations[check] <= named {
			pushes[check] = append(pushes[check], id)
		}
	})
	if err != nil || !ran {
		return false, err
	}
	for check, some := range pushes {
		a.Log.ErrorContext(ctx, "the audit found a guarantee broken", "check", check, "violations", violations[check], "pushes", some)
	}
	a.Audited(violations, time.Since(began))
	return false, nil
}
