package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/store"
)

type auditCommand struct {
	Since moment `placeholder:"2026-01-31T09:00:00Z" help:"Check only pushes that were sent, or were to be sent, from this time on (RFC 3339), and all that wait or are under way. Default: all."`
	jsonFlag
	Limit int `default:"20" help:"The maximum number of lines for each check; 0: all."`
}

// moment is a time on the command line.
type moment struct{ time.Time }

// UnmarshalText reads a time in the form of RFC 3339.
func (m *moment) UnmarshalText(text []byte) (err error) {
	if m.Time, err = time.Parse(time.RFC3339, string(text)); err != nil {
		return fmt.Errorf("%s: must be a time in the form of RFC 3339, such as 2026-01-31T09:00:00Z", brief(string(text)))
	}
	return nil
}

// Help lists the checks, after the flags.
func (auditCommand) Help() string {
	var b strings.Builder
	b.WriteString("It reads only Postgres, in chunks of recipients. Each chunk has its own snapshot. The checks:\n")
	for _, c := range audit.Checks {
		fmt.Fprintf(&b, "\n  %-19s %s", c.Name, c.Meaning)
	}
	return b.String()
}

// exitStatus is an error with an exit status of its own.
type exitStatus struct {
	error
	code int
}

func (e exitStatus) ExitCode() int { return e.code }

func (c auditCommand) Run() error {
	report := reporter(&lines{to: os.Stdout, limit: c.Limit, found: map[string]int{}})
	if c.JSON {
		report = &object{to: os.Stdout}
	}
	told := newProgress(os.Stderr)
	err := withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		if cfg.File == "" {
			fmt.Fprintln(os.Stderr, "SENDQUOTA_CONFIG is not set: checking the windows of the default policy")
		}
		kept := booking.Kept{Pushes: cfg.Retention.Pushes, Sends: cfg.Retention.Sends}
		pass := st.AuditSince(cfg.Policy.Terms(), kept, c.Since.Time)
		for !pass.Over() {
			if _, _, err := pass.Next(ctx, report.add); err != nil {
				return err
			}
			told.done(pass.Share())
		}
		return nil
	})
	if err != nil {
		return exitStatus{err, 2}
	}
	violations, err := report.end()
	switch {
	case err != nil:
		return exitStatus{err, 2}
	case violations > 0:
		return exitStatus{fmt.Errorf("%d violations", violations), 1}
	}
	return nil
}

// reporter prints the findings of an audit.
type reporter interface {
	add(f audit.Finding)
	end() (violations int, err error)
}

// lines is a report for people: up to limit lines for each check.
type lines struct {
	to    io.Writer
	limit int
	found map[string]int
}

func (l *lines) add(f audit.Finding) {
	if l.found[f.Check]++; l.limit == 0 || l.found[f.Check] <= l.limit {
		_, _ = fmt.Fprintf(l.to, "%s: push %s of tenant %s for %q: %s\n", f.Check, f.Push, f.Tenant, f.Recipient, f.Detail)
	}
}

func (l *lines) end() (violations int, err error) {
	for _, check := range audit.Checks {
		violations += l.found[check.Name]
		if more := l.found[check.Name] - l.limit; l.limit > 0 && more > 0 {
			_, _ = fmt.Fprintf(l.to, "%s: and %d more; --json or --limit 0 prints all\n", check.Name, more)
		}
	}
	if violations == 0 {
		_, err = fmt.Fprintln(l.to, "no violations")
	}
	return violations, err
}

// object is a report for programs. It is printed at the end, so that a failed audit prints nothing.
type object struct {
	to  io.Writer
	all []audit.Finding
}

func (o *object) add(f audit.Finding) { o.all = append(o.all, f) }

func (o *object) end() (violations int, err error) {
	if o.all == nil {
		o.all = []audit.Finding{}
	}
	return len(o.all), printJSON(o.to, map[string]any{"violations": o.all})
}

// progress prints each checked tenth if standard error is a terminal, or once the audit has taken 10 seconds.
type progress struct {
	to      io.Writer
	watched bool
	began   time.Time
	tenths  int // already printed
}

func newProgress(to *os.File) *progress {
	return &progress{to: to, watched: watched(to), began: time.Now()}
}

func (p *progress) done(share float64) {
	const long = 10 * time.Second
	tenths, took := int(10*share), time.Since(p.began)
	if tenths > p.tenths && (p.watched || took >= long) {
		p.tenths = tenths
		fmt.Fprintf(p.to, "checked %d %% in %s\n", 10*tenths, duration.Words(took.Round(time.Second)))
	}
}
