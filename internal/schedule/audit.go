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

// AuditorConfig is what an auditor has to know.
type AuditorConfig struct {
	Policy   quota.Policy
	Interval time.Duration // above 0
}

// named is how many pushes the log names for each check.
const named = 10

// NewAuditor returns a loop that looks for broken guarantees in what was sent recently, or is to be sent soon. Every
// worker runs one; two never look at the same time. The first pass comes after a random part of the interval, so that
// workers that start together do not meet. What the last passes have looked at is looked at again, as far back as a
// window reaches.
//
// audited is told how many violations each check has found, those without any included, and how long the audit took.
// now is the clock, usually time.Now.
func NewAuditor(st auditStore, log *slog.Logger, audited func(violations map[string]int, took time.Duration), now func() time.Time, cfg AuditorConfig) loop.Loop {
	return loop.Loop{Name: "audit", Interval: cfg.Interval, Log: log, Delay: rand.N(cfg.Interval), Pass: func(ctx context.Context) (full bool, err error) {
		began := now()
		violations, pushes := map[string]int{}, map[string][]uuid.UUID{}
		for _, check := range st.CheckNames() {
			violations[check] = 0
		}
		since, until := began.Add(-cfg.Policy.Reach()-2*cfg.Interval), began.Add(24*time.Hour)
		ran, err := st.AuditAlone(ctx, cfg.Policy, since, until, func(check string, id uuid.UUID) {
			if violations[check]++; violations[check] <= named {
				pushes[check] = append(pushes[check], id)
			}
		})
		if err != nil || !ran {
			return false, err
		}
		for check, some := range pushes {
			log.ErrorContext(ctx, "the audit found a guarantee broken", "check", check, "violations", violations[check], "pushes", some)
		}
		audited(violations, now().Sub(began))
		return false, nil
	}}
}
