// Package partitions makes the partitions of tables in advance and drops those whose retention has ended.
package partitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store makes and drops partitions.
type Store struct {
	db    *pg.DB
	terms *terms.Store
}

// New returns a Store that uses a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	return &Store{db: db, terms: terms}
}

// ahead defines how long in advance partitions are made. A transaction that still needs a missing one makes it.
var ahead = []struct {
	table pg.Partitioned
	until time.Duration
}{
	{pg.WeeksOfPushes, 60 * 7 * 24 * time.Hour},
	{pg.DaysOfSends, 14 * 24 * time.Hour},
	{pg.WeeksOfKeys, 5 * 7 * 24 * time.Hour},
	{pg.WeeksOfLog, 5 * 7 * 24 * time.Hour},
}

// madeAtOnce is the maximum number of partitions that one transaction makes, so that a slow server finishes in time.
const madeAtOnce = 8

// MakePartitions makes the missing partitions and returns their number.
func (s *Store) MakePartitions(ctx context.Context) (made int, err error) {
	for _, a := range ahead {
		for from := time.Duration(0); from <= a.until; from += madeAtOnce * a.table.Step {
			var n int
			err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
				return c.QueryRow(ctx, `SELECT make_partitions($1, now() + $2::interval, now() + $3::interval)`,
					a.table.Parent, from, min(from+madeAtOnce*a.table.Step, a.until)).Scan(&n) // the next statement repeats the last time of this one, because a day may end between them
			})
			if err != nil {
				return made, err
			}
			made += n
			failpoint.Hit(failpoint.PartitionsMade)
		}
	}
	return made, nil
}

// Partitions calls each for every table with known partitions. begin is the beginning of the oldest one. end is the
// end of the gapless range of partitions from now on.
func (s *Store) Partitions(each func(table string, begin, end time.Time)) {
	known := s.db.Layouts.Last.Load()
	if known == nil {
		return
	}
	for _, p := range []pg.Parts{known.Pushes, known.Sends, known.Keys, known.Log} {
		if len(p.Begins) == 0 {
			continue
		}
		end := p.Begin(time.Now())
		for slices.Contains(p.Begins, end) {
			end = end.Add(p.Step)
		}
		each(p.Parent, p.Begins[0], end)
	}
}

// dropTime bounds each statement that drops a partition. The statement waits for earlier readers and writers of the
// partition, and blocks later ones.
const dropTime = 10 * time.Second

// keepLock names the advisory lock of the worker that drops partitions; only one does at a time.
const keepLock = 0x6b656570

// DropPartitions drops a partition if all of its rows ended longer ago than their retention and than the longest
// window of any tenant's policy. It returns the names. It does nothing while another worker drops partitions. A
// partition that is being read now stays until a later call.
func (s *Store) DropPartitions(ctx context.Context, kept booking.Kept) (dropped []string, err error) {
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		var ours bool
		b := &pgx.Batch{}
		b.Queue(`begin`)
		b.Queue(`SELECT pg_try_advisory_xact_lock($1)`, keepLock).QueryRow(func(row pgx.Row) error { return row.Scan(&ours) })
		b.Queue(`SET LOCAL idle_in_transaction_session_timeout = '1h'`) // after the SELECT, to release its snapshot: detaching would wait for it
		if err := c.SendBatch(ctx, b).Close(); err != nil || !ours {
			return errors.Join(err, end(ctx, c))
		}
		ctx, cancel := context.WithTimeout(ctx, 50*time.Minute)
		defer cancel()
		reach, err := s.terms.LongestReach(ctx)
		if err != nil {
			return errors.Join(err, end(ctx, c))
		}
		var errs []error
		for _, k := range []struct {
			table pg.Partitioned
			kept  time.Duration
			still string // the condition of a row that is still needed; $3 is the time before which rows may go
		}{
			{pg.WeeksOfPushes, kept.Pushes, `status = 'scheduled' OR updated_at > $3`},
			{pg.DaysOfSends, kept.Sends, `ended_at IS NULL`},
			{pg.WeeksOfKeys, pushes.KeyLifetime, `created_at > $3`},
			{pg.WeeksOfLog, kept.Log, `created_at > $3`},
		} {
			d := dropping{store: s, table: k.table, kept: k.kept, still: k.still}
			if k.kept > 0 && k.table != pg.WeeksOfKeys && k.table != pg.WeeksOfLog {
				d.kept = max(d.kept, reach)
			}
			if err := d.run(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", k.table.Parent, err))
			}
			dropped = append(dropped, d.dropped...)
		}
		return errors.Join(append(errs, end(ctx, c))...)
	})
	if len(dropped) > 0 {
		s.db.Layouts.Forget()
	}
	return dropped, pg.Classify(err)
}

// end ends the transaction that holds keepLock.
func end(ctx context.Context, c *pgxpool.Conn) error {
	_, err := c.Exec(ctx, `rollback`)
	return err
}

// dropping drops the partitions of a table.
type dropping struct {
	store   *Store
	table   pg.Partitioned
	kept    time.Duration
	still   string
	dropped []string
}

// dropMark is the comment on a partition that is being dropped. With it, a later call recognises a partition that a killed
// worker has detached but not dropped.
const dropMark = "sendquota drops this partition"

// partition is an attached or detached partition of a table.
type partition struct {
	name              string
	attached, pending bool // pending: a concurrent detach was begun and not finished
	marked            bool // with dropMark
}

// run drops the partitions whose retention has ended.
func (d *dropping) run(ctx context.Context) error {
	partitions, now, err := d.list(ctx)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		begin, err := time.Parse(d.table.Parent+"_20060102", p.name)
		if err != nil {
			continue // an operator made it
		}
		before := now.Add(-d.kept)
		switch {
		case p.pending && !p.marked:
			continue // an operator is detaching it
		case p.attached && !p.pending:
			needed := d.kept == 0 || begin.Add(d.table.Step).After(before)
			if !needed {
				if needed, err = d.needed(ctx, p.name, before); err != nil {
					return err
				}
			}
			if needed {
				if err := d.unmark(ctx, p); err != nil {
					return err
				}
				continue
			}
		}
		if err := d.drop(ctx, p); err != nil {
			return err
		}
		d.dropped = append(d.dropped, p.name)
	}
	return nil
}

// list reads the partitions of the table, including marked ones that are already detached, and the current time of
// Postgres.
func (d *dropping) list(ctx context.Context) (all []partition, now time.Time, err error) {
	rows, _ := d.store.db.Pool.Query(ctx, `
		SELECT c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false), coalesce(obj_description(c.oid, 'pg_class'), '') = $2, clock_timestamp()
		FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
		WHERE c.relkind = 'r' AND (i.inhparent = to_regclass($1)
			OR i.inhrelid IS NULL AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND starts_with(c.relname, $1 || '_') AND obj_description(c.oid, 'pg_class') = $2)
		ORDER BY 3 DESC, 1`, d.table.Parent, dropMark)
	var p partition
	_, err = pgx.ForEachRow(rows, []any{&p.name, &p.attached, &p.pending, &p.marked, &now}, func() error {
		all = append(all, p)
		return nil
	})
	return all, now, err
}

// pages is the number of pages that one statement reads. A longer statement would hold its snapshot for longer.
const pages = 1 << 14

// needed reports whether a partition has a row that is still needed.
func (d *dropping) needed(ctx context.Context, name string, before time.Time) (needed bool, err error) {
	table := pgx.Identifier{name}.Sanitize()
	sql := fmt.Sprintf(`
		SELECT EXISTS (SELECT FROM %s WHERE ctid >= $1::text::tid AND ctid < $2::text::tid AND (%s)), pg_relation_size('%s') / current_setting('block_size')::int`, table, d.still, table)
	args := []any{"", ""}
	if d.table != pg.DaysOfSends {
		args = append(args, before)
	}
	for from, size := int64(0), int64(1); from < size && !needed && err == nil; from += pages {
		args[0], args[1] = fmt.Sprintf("(%d,0)", from), fmt.Sprintf("(%d,0)", from+pages)
		err = d.store.db.Pool.QueryRow(ctx, sql, args...).Scan(&needed, &size)
	}
	return needed, err
}

// drop marks a partition, detaches it concurrently, and drops it. A later call continues if the worker stops after any
// step.
func (d *dropping) drop(ctx context.Context, p partition) error {
	table, part := pgx.Identifier{d.table.Parent}.Sanitize(), pgx.Identifier{p.name}.Sanitize()
	if !p.marked {
		if err := d.exec(ctx, fmt.Sprintf(`COMMENT ON TABLE %s IS '%s'`, part, dropMark)); err != nil {
			return d.explain(ctx, err)
		}
		failpoint.Hit(failpoint.PartitionMarked)
	}
	if p.attached {
		how := "CONCURRENTLY"
		if p.pending {
			how = "FINALIZE"
		}
		if err := d.exec(ctx, fmt.Sprintf(`ALTER TABLE %s DETACH PARTITION %s %s`, table, part, how)); err != nil {
			return d.explain(ctx, err)
		}
		failpoint.Hit(failpoint.PartitionDetached)
	}
	if err := d.exec(ctx, `DROP TABLE IF EXISTS `+part); err != nil {
		return err
	}
	failpoint.Hit(failpoint.PartitionDropped)
	return nil
}

// unmark removes the mark from a partition whose retention was extended.
func (d *dropping) unmark(ctx context.Context, p partition) error {
	if !p.marked {
		return nil
	}
	return d.explain(ctx, d.exec(ctx, fmt.Sprintf(`COMMENT ON TABLE %s IS NULL`, pgx.Identifier{p.name}.Sanitize())))
}

// exec runs a statement with a timeout.
func (d *dropping) exec(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	_, err := d.store.db.Pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// explain adds the fix to an error of a role that does not own the partitions.
func (d *dropping) explain(ctx context.Context, err error) error {
	var role, owner string
	if !pg.HasCode(err, pg.InsufficientPrivilege) || d.store.db.Pool.QueryRow(ctx, `SELECT quote_ident(current_user), quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = to_regclass($1)`, d.table.Parent).Scan(&role, &owner) != nil {
		return err
	}
	return fmt.Errorf("the role %[1]s may not drop old partitions of %[2]s; run, as %[2]s: GRANT %[2]s TO %[1]s: %[3]w", role, owner, err)
}
