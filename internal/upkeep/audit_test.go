package upkeep_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// audits collects the results that an auditor reports.
type audits []map[string]int

func (b *bundle) auditor(a *audits, log *slog.Logger) loop.Loop {
	return upkeep.NewAuditor(b.store, log, func(violations map[string]int, took time.Duration, _ time.Time) {
		if took > 0 {
			*a = append(*a, violations)
		}
	}, time.Now, upkeep.AuditorConfig{Policy: threeRules, Interval: time.Millisecond})
}

// breakEarly breaks the guarantee that no push is sent early.
func breakEarly(t *testing.T, database string, id uuid.UUID) {
	t.Helper()
	testenv.Forge(t, database)
	testenv.Exec(t, database, `UPDATE pushes SET next_at = send_at - interval '1 minute' WHERE id = $1`, id)
}

// TestAuditor_Pass counts the violations of every check. The log names pushes and no recipients.
func TestAuditor_Pass(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	var (
		reported audits
		log      bytes.Buffer
	)
	a := b.auditor(&reported, slog.New(slog.NewTextHandler(&log, nil)))
	pass := func() map[string]int {
		t.Helper()
		if full, err := a.Pass(t.Context()); full || err != nil || len(reported) == 0 {
			t.Fatal(full, err, reported)
		}
		return reported[len(reported)-1]
	}
	bad, far := b.submit(t, time.Hour), b.submit(t, 48*time.Hour)
	if v := pass(); len(v) != len(audit.Checks) || v["early"] != 0 || log.Len() > 0 {
		t.Errorf("before: %v, %s", v, &log)
	}
	breakEarly(t, b.postgres, bad.ID)
	breakEarly(t, b.postgres, far.ID) // too far ahead to be checked yet
	if v := pass(); v["early"] != 1 || v["overlap"] != 0 {
		t.Errorf("after: %v", v)
	}
	text := log.String()
	if strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, bad.ID.String()) || !strings.Contains(text, "check=early") || strings.Contains(text, "anna") {
		t.Errorf("it logged %s", text)
	}
}

// TestAuditor_OneAtATime: an auditor makes no pass while another one works. Afterwards it reports the result, and
// leaves logging it to the other one.
func TestAuditor_OneAtATime(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	breakEarly(t, b.postgres, b.submit(t, time.Hour).ID)
	var (
		reported audits
		log      bytes.Buffer
	)
	a, beside := b.auditor(&reported, slog.New(slog.NewTextHandler(&log, nil))), 0
	plan := booking.AuditPlan{Policy: threeRules, Every: time.Hour, Back: time.Hour, Ahead: 24 * time.Hour}
	ended, err := b.store.RunAudit(t.Context(), uuid.New(), plan, func(booking.AuditChunk) error {
		if beside++; beside > 1 {
			return nil
		}
		if _, err := a.Pass(t.Context()); err != nil || len(reported) != 0 {
			t.Errorf("beside another: %v, %v", reported, err)
		}
		return nil
	})
	if !ended || err != nil || beside == 0 {
		t.Fatal(ended, err, beside)
	}
	testenv.Exec(t, b.postgres, `UPDATE audit_pass SET owner = gen_random_uuid(), owned_until = now() + interval '1 hour'`) // owned by a third worker
	if _, err := a.Pass(t.Context()); err != nil || len(reported) != 1 || reported[0]["early"] != 1 || log.Len() > 0 {
		t.Errorf("after it: %v, %v, %s", reported, err, &log)
	}
	if _, err := a.Pass(t.Context()); err != nil || len(reported) != 1 {
		t.Errorf("reported twice: %v, %v", reported, err)
	}
}

// TestAuditor_Stopped: a worker that is stopped releases its pass at once.
func TestAuditor_Stopped(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	stop := errors.New("stopped")
	plan := booking.AuditPlan{Policy: threeRules, Every: time.Hour, Back: time.Hour, Ahead: 24 * time.Hour}
	chunks := func(after error) (n int) {
		ended, err := b.store.RunAudit(t.Context(), uuid.New(), plan, func(booking.AuditChunk) error { n++; return after })
		if ended != (after == nil) || !errors.Is(err, after) {
			t.Fatal(ended, err)
		}
		return n
	}
	if first := chunks(stop); first != 1 {
		t.Errorf("%d chunks before the stop", first)
	}
	before, err := b.store.LastAudit(t.Context())
	if err != nil || before != nil {
		t.Fatal(before, err)
	}
	rest := chunks(nil)
	if after, err := b.store.LastAudit(t.Context()); err != nil || after == nil || rest == 0 {
		t.Fatal(after, err, rest)
	}
}

// TestAuditPace: a pass spreads its reads over three quarters of an interval, by the time that the last one read. Reads
// take at most a fiftieth of the time while that is enough.
func TestAuditPace(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		last  *booking.AuditResult
		late  bool
		pause time.Duration
	}{
		"the first":      {nil, false, 490 * time.Millisecond},
		"little to read": {&booking.AuditResult{Busy: time.Second}, false, 490 * time.Millisecond},
		"much to read":   {&booking.AuditResult{Busy: 45 * time.Second}, false, 140 * time.Millisecond},
		"more than fits": {&booking.AuditResult{Busy: time.Hour}, false, 10 * time.Millisecond},
		"late":           {nil, true, 10 * time.Millisecond},
	} {
		now := began
		pace := upkeep.NewAuditPace(func() time.Time { return now }, 15*time.Minute, row.last)
		if row.late {
			now = now.Add(12 * time.Minute)
		}
		if got := pace(10 * time.Millisecond); got != row.pause {
			t.Errorf("%s: a pause of %s, want %s", name, got, row.pause)
		}
		if got := pace(time.Hour); !row.late && got > 20*time.Second {
			t.Errorf("%s: another worker takes the pass in a pause of %s", name, got)
		}
	}
}

// TestAuditor_Intervals: an auditor makes a pass at every interval, and ends with its context.
func TestAuditor_Intervals(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	n := 0
	for _, interval := range []time.Duration{time.Millisecond, time.Hour} {
		a := upkeep.NewAuditor(b.store, quiet, func(map[string]int, time.Duration, time.Time) {
			if n++; n == 3 {
				stop()
			}
		}, time.Now, upkeep.AuditorConfig{Policy: threeRules, Interval: interval})
		if err := a.Run(ctx); err != nil || n < 3 {
			t.Errorf("%d audits, %v", n, err)
		}
	}
}
