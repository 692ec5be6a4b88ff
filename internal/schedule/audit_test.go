package schedule_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// audits are what an auditor has told.
type audits []map[string]int

func (b *bundle) auditor(a *audits, log *slog.Logger) loop.Loop {
	return schedule.NewAuditor(b.store, log, func(violations map[string]int, took time.Duration) {
		if took > 0 {
			*a = append(*a, violations)
		}
	}, time.Now, schedule.AuditorConfig{Policy: threeRules, Interval: 15 * time.Minute})
}

// breakEarly has a push break the guarantee that nothing is sent early.
func breakEarly(t *testing.T, database string, id uuid.UUID) {
	t.Helper()
	testenv.Forge(t, database)
	testenv.Exec(t, database, `UPDATE pushes SET next_at = send_at - interval '1 minute' WHERE id = $1`, id)
}

// TestAuditor_Pass counts the violations of every check, and names pushes but no recipients in the log.
func TestAuditor_Pass(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	b := s.open(t, threeRules)
	var (
		told audits
		log  bytes.Buffer
	)
	a := b.auditor(&told, slog.New(slog.NewTextHandler(&log, nil)))
	pass := func() map[string]int {
		t.Helper()
		if full, err := a.Pass(t.Context()); full || err != nil || len(told) == 0 {
			t.Fatal(full, err, told)
		}
		return told[len(told)-1]
	}
	bad, far := b.submit(t, time.Hour), b.submit(t, 48*time.Hour)
	if v := pass(); len(v) != len(store.Checks) || v["early"] != 0 || log.Len() > 0 {
		t.Errorf("before: %v, %s", v, &log)
	}
	breakEarly(t, s.postgres, bad.ID)
	breakEarly(t, s.postgres, far.ID) // which is not looked at yet
	if v := pass(); v["early"] != 1 || v["overlap"] != 0 {
		t.Errorf("after: %v", v)
	}
	text := log.String()
	if strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, bad.ID.String()) || !strings.Contains(text, "check=early") || strings.Contains(text, "anna") {
		t.Errorf("it logged %s", text)
	}
}

// TestAuditor_OneAtATime: an auditor that finds another at work tells nothing.
func TestAuditor_OneAtATime(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	b := s.open(t, threeRules)
	breakEarly(t, s.postgres, b.submit(t, time.Hour).ID)
	var told audits
	a, beside := b.auditor(&told, quiet), 0
	ran, err := b.store.AuditAlone(t.Context(), threeRules, began, began.Add(24*time.Hour), func(string, uuid.UUID) {
		beside++
		if _, err := a.Pass(t.Context()); err != nil || len(told) != 0 {
			t.Errorf("beside another: %v, %v", told, err)
		}
	})
	if !ran || err != nil || beside == 0 {
		t.Fatal(ran, err, beside)
	}
	if _, err := a.Pass(t.Context()); err != nil || len(told) != 1 {
		t.Errorf("alone: %v, %v", told, err)
	}
}

// TestAuditor_Intervals: an auditor makes a pass at every interval, and ends with its context.
func TestAuditor_Intervals(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	for _, interval := range []time.Duration{time.Millisecond, time.Hour} {
		a := schedule.NewAuditor(b.store, quiet, func(map[string]int, time.Duration) {
			if n++; n == 3 {
				stop()
			}
		}, time.Now, schedule.AuditorConfig{Policy: threeRules, Interval: interval})
		if err := a.Run(ctx); err != nil || n < 3 {
			t.Errorf("%d audits, %v", n, err)
		}
	}
}
