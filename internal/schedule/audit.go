package schedule

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// Auditor looks for broken guarantees in what was sent recently, or is to be
// sent soon. Every worker runs one; two never look at the same time.
type Auditor struct {
	Store    *store.Store
	Log      *slog.Logger
	Policy   quota.Policy
	Interval time.Duration // above 0
	// Audited is told how many violations each check has found, those without
	// any included, and how long the audit took.
	Audited func(violations map[string]int, took time.Duration)
}

// named is how many pushes the log names for each check.
const named = 10

// Run audits at every interval until ctx ends, the first time after a random
// part of it: so that workers that start together do not meet.
func (a *Auditor) Run(ctx context.Context) error {
	return loop.Loop{Name: "audit", Interval: a.Interval, Log: a.Log, Pass: a.Pass, Delay: rand.N(a.Interval)}.Run(ctx)
}

// Pass audits once, unless another worker is at it. What the last passes have
// looked at is looked at again, as far back as a window reaches.
func (a *Auditor) Pass(ctx context.Context) (full bool, err error) {
	began := time.Now()
	violations, pushes := map[string]int{}, map[string][]uuid.UUID{}
	for _, check := range store.CheckNames() {
		violations[check] = 0
	}
	scope := store.AuditScope{
		Policy: a.Policy, Since: began.Add(-a.Policy.Reach() - 2*a.Interval), Until: began.Add(24 * time.Hour), Alone: true,
	}
	ran, err := a.Store.AuditEach(ctx, scope, func(f store.Finding) {
		if violations[f.Check]++; violations[f.Check] <= named {
			pushes[f.Check] = append(pushes[f.Check], f.Push)
		}
	}, nil)
	if err != nil || !ran {
		return false, err
	}
	for check, some := range pushes {
		a.Log.ErrorContext(ctx, "the audit found a guarantee broken", "check", check, "violations", violations[check], "pushes", some)
	}
	a.Audited(violations, time.Since(began))
	return false, nil
}
