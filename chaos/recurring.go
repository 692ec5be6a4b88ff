package main

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// recurs is an occurrence of a schedule in Postgres, and the push for it.
type recurs struct {
	Schedule, Outcome, Reason, Push string
	At                              time.Time
}

// settledSchedule is a schedule, and how often it has happened.
type settledSchedule struct {
	ID, Recipient string
	Due           int
}

// startSchedules makes schedules that happen every minute, each for a recipient of its own: the first is due in two
// seconds, and one more in each second after that.
func (b *bundle) startSchedules(n int) {
	testenv.Exec(b, b.Database, `
		INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, next_at, created_at, updated_at)
		SELECT gen_random_uuid(), t.id, '', '@every 1m', 'UTC', json_build_object('recipient', 'recurring-' || n, 'message', '{}'::json), 'skip', false,
			s.began, s.began, s.began + interval '1 minute', s.began, s.began
		FROM tenants t CROSS JOIN generate_series(1, $1) n
		CROSS JOIN LATERAL (SELECT date_trunc('second', clock_timestamp() - interval '59 seconds') + n * interval '1 second' AS began) s
		WHERE t.name <> $2`, n, teamTenant) // names distinguish recipients
}

// endSchedules ends all schedules, if wanted only after each has happened, and waits until what they have begun is
// submitted, see await.
func (b *bundle) endSchedules(happened bool, timeout time.Duration) {
	const end = `UPDATE schedules SET next_at = NULL`
	if happened {
		b.await(timeout, `SELECT count(*) FROM schedules WHERE done_at = began_at`)
	}
	testenv.Exec(b, b.Database, end)
	b.await(timeout, `SELECT count(*) FROM schedule_runs WHERE outcome IS NULL`)
	testenv.Exec(b, b.Database, end) // those that ended meanwhile have a next time again
}

// readSchedules reads what schedules have done.
func (f *facts) readSchedules(b *bundle, conn *pgx.Conn) {
	rows, _ := conn.Query(b.Context(), `
		SELECT schedule_id::text, coalesce(outcome, ''), reason, coalesce(push_id::text, ''), at FROM schedule_runs ORDER BY schedule_id, at`)
	var err error
	f.recurs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[recurs])
	testenv.Check(b, err)
	rows, _ = conn.Query(b.Context(), `SELECT id::text, push->>'recipient', round(extract(epoch FROM done_at - began_at) / 60)::int FROM schedules`)
	f.schedules, err = pgx.CollectRows(rows, pgx.RowToStructByPos[settledSchedule])
	testenv.Check(b, err)
}

// occurrencesHold is I8: every occurrence has one record, and what was submitted one push. Pushes without a record are
// found by I5.
func (j *findings) occurrencesHold() {
	runs := map[string]int{}
	pushes := map[string]time.Time{}
	for _, r := range j.facts.recurs {
		runs[r.Schedule]++
		p, ok := j.facts.rows[r.Push]
		_, twice := pushes[r.Push]
		switch {
		case r.Outcome == "":
			j.broken("I8", "the occurrence of schedule %s at %s was begun and never ended", r.Schedule, stamp(r.At))
		case r.Outcome != "submitted" && r.Reason == "":
			j.broken("I8", "the occurrence of schedule %s at %s is %s without a reason", r.Schedule, stamp(r.At), r.Outcome)
		case r.Outcome == "submitted" && !ok:
			j.broken("I8", "push %s of schedule %s at %s is not in Postgres", r.Push, r.Schedule, stamp(r.At))
		case r.Outcome == "submitted" && twice:
			j.broken("I8", "push %s belongs to two occurrences of schedule %s", r.Push, r.Schedule)
		case r.Outcome == "submitted" && (p.Status == "scheduled" || p.Status == "sending"):
			j.broken("I1", "push %s of schedule %s, for %s, is still %s", r.Push, r.Schedule, stamp(p.SendAt), p.Status)
		case r.Outcome == "submitted" && p.SendAt.Before(r.At):
			j.broken("I8", "push %s of schedule %s is for %s, before %s", r.Push, r.Schedule, stamp(p.SendAt), stamp(r.At))
		}
		if r.Outcome == "submitted" {
			pushes[r.Push] = r.At
		}
	}
	for _, s := range j.facts.schedules {
		if runs[s.ID] != s.Due {
			j.broken("I8", "schedule %s has happened %d times, and has %d records", s.ID, s.Due, runs[s.ID])
		}
	}
}
