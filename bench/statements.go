package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// profiled calls f, which adds rows to the report. If one falls short, the report also lists the statements that kept
// the connections to the system's database busy.
func (l *lab) profiled(what string, s *sendquota, f func()) {
	rows := len(l.report.Rows)
	top := s.statements(f)
	if slices.ContainsFunc(l.report.Rows[rows:], func(one row) bool { return one.OK == yes(false) }) {
		l.report.Profiles = append(l.report.Profiles, profile{Measurement: what, Program: "Postgres", How: "samples of pg_stat_activity", Top: top})
	}
}

// statements samples which statements the connections to a system's database run while f runs. It returns the most
// expensive ones, each with its share of one connection's time.
func (s *sendquota) statements(f func()) (top string) {
	const pause = 20 * time.Millisecond
	db, done, stopped := testenv.Connect(s.l, s.Database), make(chan struct{}), make(chan struct{})
	seen, looks := map[string]int{}, 0
	s.l.sampler = int(db.PgConn().PID())
	go func() {
		defer close(stopped)
		for {
			rows, _ := db.Query(s.l.Context(), `
				SELECT query FROM pg_stat_activity
				WHERE state = 'active' AND datname = current_database() AND application_name = 'sendquota' AND wait_event_type IS NULL`)
			running, _ := pgx.CollectRows(rows, pgx.RowTo[string]) // a profile without some samples is good enough
			for _, query := range running {
				seen[query]++
			}
			looks++
			select {
			case <-done:
				return
			case <-time.After(pause):
			}
		}
	}()
	func() {
		defer func() { close(done); <-stopped; s.l.sampler = 0 }()
		f()
	}()
	queries := slices.SortedFunc(maps.Keys(seen), func(a, b string) int { return cmp.Or(seen[b]-seen[a], strings.Compare(a, b)) })
	var b strings.Builder
	for _, query := range queries[:min(len(queries), 5)] {
		fmt.Fprintf(&b, "%5.1f %%  %.700s\n", 100*float64(seen[query])/float64(looks), strings.Join(strings.Fields(query), " "))
	}
	return strings.TrimSuffix(b.String(), "\n")
}
