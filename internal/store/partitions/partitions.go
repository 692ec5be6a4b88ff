package partitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
)

// Partitions are made before they are needed, and dropped when all that is in them is kept for long enough.

// ahead is for how long partitions are made. One that lacks all the same is made by whoever needs it.
var ahead = []struct {
	table pg.Partitioned
	until time.Duration
}{
	{pg.WeeksOfPushes, 60 * 7 * 24 * time.Hour},
	{pg.DaysOfSends, 14 * 24 * time.Hour},
	{pg.WeeksOfKeys, 5 * 7 * 24 * time.Hour},
	{pg.WeeksOfLog, 5 * 7 * 24 * time.Hour},
}

// madeAtOnce is how many partitions one transaction makes at most: a slow server, too, makes them in time.
const madeAtOnce = 8

// MakePartitions makes the partitions that lack, and says how many.
func (s *Store) MakePartitions(ctx context.Context) (made int, err error) {
	for _, a := range ahead {
		for from := time.Duration(0); from <= a.until; from += madeAtOnce * a.table.Step {
			var n int
			err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
				return c.QueryRow(ctx, `SELECT make_partitions($1, now() + $2::interval, now() + $3::interval)`,
					a.table.Parent, from, min(from+madeAtOnce*a.table.Step, a.until)).Scan(&n) // the next one begins with this one's last: a day may end between them
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

// Partitions calls each for every table with partitions, as this program knows them: with the beginning of the first one, and
// with the end of the last one of those that follow the present one without a gap.
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

// dropTime bounds each statement that drops a partition. What reads or writes the partition at the same time waits for it,
// and it waits for what did so before.
const dropTime = 10 * time.Second

// keepLock names the lock of the only worker that drops partitions.
const keepLock = 0x6b656570

// DropPartitions drops the partitions in which everything ended longer ago than it is kept, and than the longest window of any
// tenant's policy, unless another worker is at that, and says which. One that cannot be dropped now, because it is being read, is dropped by a later call.
func (s *Store) DropPartitions(ctx context.Context, kept booking.Kept) (dropped []string, err error) {
	err = pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		var ours bool
		b := &pgx.Batch{}
		b.Queue(`begin`)
		b.Queue(`SELECT pg_try_advisory_xact_lock($1)`, keepLock).QueryRow(func(row pgx.Row) error { return row.Scan(&ours) })
		b.Queue(`SET LOCAL idle_in_transaction_session_timeout = '1h'`) // behind it, so that the snapshot of that is dropped: detaching would wait for it
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
			still string // a condition on a row that is still needed; it has the time $3
		}{
			{pg.WeeksOfPushes, kept.Pushes, `status = 'scheduled' OR updated_at > $3`},
			{pg.DaysOfSends, kept.Sends, `ended_at IS NULL`},
			{pg.WeeksOfKeys, pushes.KeyTime, `created_at > $3`},
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

// onItsWay marks a table that is to be dropped: it may have been detached, and not dropped, when a worker was killed.
const onItsWay = "sendquota drops this partition"

// partition is one of a table, or was one.
type partition struct {
	name              string
	attached, pending bool // pending: detaching it was begun
	marked            bool
}

func (d *dropping) run(ctx context.Context) error {
	partitions, now, err := d.list(ctx)
	if err != nil {
		return err
	}
	for _, p := range partitions {
		begin, err := time.Parse(d.table.Parent+"_20060102", p.name)
		if err != nil {
			continue // it was made by hand
		}
		before := now.Add(-d.kept)
		switch {
		case p.pending && !p.marked:
			continue // an operator detaches it
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

// list reads the partitions of the table, and those that were, with the time.
func (d *dropping) list(ctx context.Context) (all []partition, now time.Time, err error) {
	rows, _ := d.store.db.Pool.Query(ctx, `
		SELECT c.relname, i.inhrelid IS NOT NULL, coalesce(i.inhdetachpending, false), coalesce(obj_description(c.oid, 'pg_class'), '') = $2, clock_timestamp()
		FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
		WHERE c.relkind = 'r' AND (i.inhparent = to_regclass($1)
			OR i.inhrelid IS NULL AND c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND starts_with(c.relname, $1 || '_') AND obj_description(c.oid, 'pg_class') = $2)
		ORDER BY 3 DESC, 1`, d.table.Parent, onItsWay)
	var p partition
	_, err = pgx.ForEachRow(rows, []any{&p.name, &p.attached, &p.pending, &p.marked, &now}, func() error {
		all = append(all, p)
		return nil
	})
	return all, now, err
}

// pages are how many pages are read in one statement, which holds a snapshot.
const pages = 1 << 14

// needed reports whether a row of a partition is still needed.
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

// drop marks a partition, detaches it while others use the table, and drops it. Each step may be the last one of a worker.
func (d *dropping) drop(ctx context.Context, p partition) error {
	table, part := pgx.Identifier{d.table.Parent}.Sanitize(), pgx.Identifier{p.name}.Sanitize()
	if !p.marked {
		if err := d.exec(ctx, fmt.Sprintf(`COMMENT ON TABLE %s IS '%s'`, part, onItsWay)); err != nil {
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

// unmark takes the mark from a partition that was to be dropped, and is to be kept for longer now.
func (d *dropping) unmark(ctx context.Context, p partition) error {
	if !p.marked {
		return nil
	}
	return d.explain(ctx, d.exec(ctx, fmt.Sprintf(`COMMENT ON TABLE %s IS NULL`, pgx.Identifier{p.name}.Sanitize())))
}

func (d *dropping) exec(ctx context.Context, sql string) error {
	ctx, cancel := context.WithTimeout(ctx, dropTime)
	defer cancel()
	_, err := d.store.db.Pool.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	return err
}

// explain says what the operator can do about a role that may not drop what it does not own.
func (d *dropping) explain(ctx context.Context, err error) error {
	var role, owner string
	if !pg.HasCode(err, pg.MayNot) || d.store.db.Pool.QueryRow(ctx, `SELECT quote_ident(current_user), quote_ident(pg_get_userbyid(relowner)) FROM pg_class WHERE oid = to_regclass($1)`, d.table.Parent).Scan(&role, &owner) != nil {
		return err
	}
	return fmt.Errorf("the role %[1]s may not drop old partitions, which belong to %[2]s; for that run, as %[2]s: GRANT %[2]s TO %[1]s: %[3]w", role, owner, err)
}
