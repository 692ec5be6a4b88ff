package main

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/testenv"
)

const day = 24 * time.Hour

// keptBriefly is the retention of pushes and sends in the cases about upkeep: longer than any rule looks back.
const keptBriefly = 7 * day

// partitioned are the tables with partitions: of how long a time each is, and how long what is in it is kept there.
var partitioned = map[string]struct{ step, kept time.Duration }{
	"pushes":      {7 * day, keptBriefly},
	"sends":       {day, keptBriefly},
	"idempotency": {7 * day, 30 * day},
	"audit_log":   {7 * day, keptBriefly},
}

// partition returns the name of the partition of a time.
func partition(table string, at time.Time) string {
	return table + at.UTC().Truncate(partitioned[table].step).Format("_20060102")
}

// endOf returns when the time of a partition ends, and for how long after that it is kept.
func endOf(name string) (end time.Time, kept time.Duration) {
	at := strings.LastIndexByte(name, '_')
	of := partitioned[name[:at]]
	begin, _ := time.Parse("20060102", name[at+1:])
	return begin.Add(of.step), of.kept
}

// upkeep holds the expected results of the workers' upkeep.
type upkeep struct {
	began      time.Time
	partitions map[string]bool // that there were when no worker ran, and those that were missing
	needed     string          // the old one of a push that ended just now
	late       []string        // what has not happened
}

// ofUpkeep reports whether a point is on the way of what workers do besides pushes: with lanes, partitions, and the audit.
func ofUpkeep(p failpoint.Point) bool {
	what, _, _ := strings.Cut(string(p), ".")
	return what == "lanes" || what == "partitions" || what == "partition" || what == "audit"
}

// ofAudit reports whether a point is on the way of the workers' audit.
func ofAudit(p failpoint.Point) bool { return strings.HasPrefix(string(p), "audit.") }

// prepareUpkeep makes old partitions, most of them empty. Some have a push or an attempt that ended long ago, and one has a push
// whose send time is as old, and which was canceled just now. Of the partitions ahead two are missing: a worker would need seconds to
// make them all.
func (b *bundle) prepareUpkeep() {
	u := &upkeep{began: time.Now(), partitions: map[string]bool{}, needed: partition("pushes", time.Now().Add(-30*day))}
	c, ctx, conn := b.newCaller(), b.Context(), testenv.Connect(b, b.Database)
	late := c.submit(ctx, "ended-late", "", "ended-late", time.Now().Add(time.Hour).Truncate(time.Second))
	c.cancel(ctx, late)
	for _, sql := range []string{
		`SELECT make_partitions('pushes', $2::timestamptz - interval '44 days', $2::timestamptz + interval '60 weeks'),
			make_partitions('sends', $2::timestamptz - interval '12 days', $2::timestamptz + interval '14 days'),
			make_partitions('idempotency', $2::timestamptz - interval '50 days', $2::timestamptz + interval '5 weeks'),
			make_partitions('audit_log', $2, $2::timestamptz + interval '5 weeks') WHERE $1 <> ''`,
		`UPDATE pushes SET send_at = date_trunc('second', $2::timestamptz - interval '30 days'), requested_send_at = date_trunc('second', $2::timestamptz - interval '30 days'),
			next_at = date_trunc('second', $2::timestamptz - interval '30 days'), created_at = $2::timestamptz - interval '31 days' WHERE id = $1::text::uuid`,
		`INSERT INTO pushes
			SELECT (jsonb_populate_record(p, jsonb_build_object('id', gen_random_uuid(), 'created_at', p.created_at, 'updated_at', at, 'send_at', at, 'requested_send_at', at, 'next_at', at))).*
			FROM pushes p CROSS JOIN LATERAL (SELECT date_trunc('second', $2::timestamptz - n * interval '1 day') AS at FROM unnest('{16, 23}'::int[]) n) old WHERE p.id = $1::text::uuid`,
		`INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, shard, recipient, channel, started_at, lease_until, ended_at, outcome)
			SELECT gen_random_uuid(), 1, tenant_id, recipient_key, recipient_key & 255, recipient, channel, at, at + interval '1 second', at + interval '1 second', 'refused'
			FROM pushes p CROSS JOIN LATERAL (SELECT $2::timestamptz - n * interval '1 day' AS at FROM unnest('{9, 10, 12}'::int[]) n) old WHERE p.id = $1::text::uuid`,
	} {
		_, err := conn.Exec(ctx, sql, late.ID, u.began)
		testenv.Check(b, err)
	}
	u.partitions = readPartitions(b, conn)
	for _, name := range []string{partition("pushes", u.began.Add(59*7*day)), partition("sends", u.began.Add(13*day))} {
		_, err := conn.Exec(ctx, `DROP TABLE IF EXISTS `+name)
		testenv.Check(b, err)
		u.partitions[name] = true
	}
	b.upkeep = u
}

// orphanAudit waits until the victim is at the point. Whatever it had of the audit, its lease of a minute is over then.
func (b *bundle) orphanAudit(victim *program, c crash) {
	for deadline := time.Now().Add(20 * time.Second); victim.said("at "+string(c.point)+",") == 0; testenv.Sleep(b, 20*time.Millisecond) {
		if time.Now().After(deadline) {
			return
		}
	}
	testenv.Exec(b, b.Database, `UPDATE audit_pass SET owned_until = '-infinity'`)
}

// endUpkeep waits for a limited time until the upkeep is done: all lanes have an owner, old partitions are gone, and a
// pass of the audit has ended that began after everything had settled. A worker that failed to create or drop
// partitions, because the machine is busy, tries again only in ten minutes; so a new worker is started.
func (b *bundle) endUpkeep(timeout time.Duration) {
	conn := testenv.Connect(b, b.Database)
	var settled time.Time
	testenv.Check(b, conn.QueryRow(b.Context(), `SELECT clock_timestamp()`).Scan(&settled))
	for deadline, failed := time.Now().Add(timeout), 0; ; testenv.Sleep(b, 100*time.Millisecond) {
		var owned, audited bool
		testenv.Check(b, conn.QueryRow(b.Context(), `
			SELECT (SELECT count(*) FROM lanes WHERE owned_until > clock_timestamp()) >= $1, $2 OR EXISTS (SELECT FROM audits WHERE began_at > $3)`,
			b.lanes, b.audit == 0, settled).Scan(&owned, &audited))
		j := findings{b: b, facts: &facts{partitions: readPartitions(b, conn)}}
		j.partitionsHold()
		switch over := time.Now().After(deadline); {
		case owned && audited && len(j.found) == 0:
			return
		case over:
			if !owned {
				b.upkeep.late = append(b.upkeep.late, "not all lanes have an owner")
			}
			if !audited {
				b.upkeep.late = append(b.upkeep.late, "no pass of the audit has ended")
			}
			return
		}
		if n := b.said(`"keep failed`); n > failed {
			failed = n
			b.startWorker(nil)
		}
	}
}

// readPartitions lists the partitions that there are, and whether their table has them.
func readPartitions(b *bundle, conn *pgx.Conn) map[string]bool {
	rows, _ := conn.Query(b.Context(), `
		SELECT c.relname::text, EXISTS (SELECT FROM pg_inherits i WHERE i.inhrelid = c.oid AND NOT i.inhdetachpending)
		FROM pg_class c WHERE c.relkind = 'r' AND c.relname ~ '^(pushes|sends|idempotency|audit_log)_\d{8}$'`)
	all := map[string]bool{}
	var (
		name     string
		attached bool
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &attached}, func() error { all[name] = attached; return nil })
	testenv.Check(b, err)
	return all
}

// readUpkeep reads what workers have done besides pushes.
func (f *facts) readUpkeep(b *bundle, conn *pgx.Conn) {
	if b.upkeep != nil {
		f.partitions = readPartitions(b, conn)
		testenv.Check(b, conn.QueryRow(b.Context(), `SELECT coalesce(sum(violations), 0)::int FROM audit_findings`).Scan(&f.noticed))
	}
}

// upkeepHolds: what a killed worker has left of the upkeep is done, and the workers' audit finds nothing.
func (j *findings) upkeepHolds() {
	if j.b.upkeep == nil {
		return
	}
	for _, late := range j.b.upkeep.late {
		j.broken("upkeep", "%s", late)
	}
	if j.facts.noticed > 0 {
		j.broken("audit", "the workers have found %d violations", j.facts.noticed)
	}
	j.partitionsHold()
}

// partitionsHold checks that exactly the partitions that are no longer needed are gone.
func (j *findings) partitionsHold() {
	u, now := j.b.upkeep, time.Now()
	for name := range u.partitions {
		attached, there := j.facts.partitions[name]
		end, kept := endOf(name)
		switch needed := name == u.needed || end.After(now.Add(-kept)); {
		case needed && !attached:
			j.broken("upkeep", "the partition %s is needed, and gone", name)
		case there && name != u.needed && !end.After(u.began.Add(-kept)):
			j.broken("upkeep", "the partition %s is old, and not dropped", name)
		}
	}
}
