package bulk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// Running is a bulk change that a worker runs.
type Running struct {
	bulkchange.Change
	Caps push.OwnCaps // the caps of its tenant
}

// scannedPerStep is the number of pushes that one step of the listing reads.
const scannedPerStep = 1000

// TakeBulkChange leases the bulk change that has waited longest for its next step to a worker. It skips changes that
// other workers hold and changes of the tenants in except, and returns nil if none is left. Two workers may still do
// the same step.
func (s *Store) TakeBulkChange(ctx context.Context, worker uuid.UUID, except []uuid.UUID) (*Running, error) {
	return pg.Leased[Running]{
		Table:   "bulk_changes",
		Open:    `ended_at IS NULL AND (resume_at <= clock_timestamp()) IS NOT FALSE`,
		Columns: bulkColumns + `, t.pending_cap, t.recipients_cap`,
		Scan: func(row pgx.CollectableRow) (r Running, err error) {
			r.Change, err = scanBulk(row, &r.Caps.PendingPushes, &r.Caps.RecipientsPerDay)
			return r, err
		},
	}.Take(ctx, s.db, worker, except)
}

// bulkStep locks a bulk change, runs work and commits. It does nothing if the change has ended.
func (s *Store) bulkStep(ctx context.Context, id uuid.UUID, work func(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, p *bulkchange.Change, after push.Position) error) error {
	var after push.Position
	scan := func(row pgx.CollectableRow) (bulkchange.Change, error) {
		return scanBulk(row, &after.SendAt, &after.ID)
	}
	locked := func(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, p *bulkchange.Change) error {
		return work(ctx, c, tx, p, after)
	}
	return pg.LeasedStep(ctx, s.db, scan, locked, `SELECT `+bulkColumns+`, greatest(p.after_at, '0001-01-01Z'), p.after_id FROM bulk_changes p WHERE id = $1 AND ended_at IS NULL`, id)
}

// ListBulk lists the next pushes of a bulk change: those that matched its filter when it was made. A push that was moved
// since is there already, if it is to be changed, or marked as outside: the transactions that move pushes add them. Pushes
// that were booked since stay untouched.
func (s *Store) ListBulk(ctx context.Context, id uuid.UUID) error {
	if err := s.awaitEarlier(ctx, id); err != nil {
		return err
	}
	return s.bulkStep(ctx, id, func(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, p *bulkchange.Change, after push.Position) error {
		if p.Listed || p.Status != bulkchange.Running {
			return nil
		}
		found, next, err := s.bulkPage(ctx, pg.Reader{Conn: c}, p, after)
		if err != nil {
			return err
		}
		var (
			ids, keys = make([]uuid.UUID, len(found)), make([]int64, len(found))
			times     = make([]time.Time, len(found))
		)
		for i, one := range found {
			ids[i], keys[i], times[i] = one.ID, one.RecipientKey, one.SendAt
		}
		tag, err := tx.Exec(ctx, `
			INSERT INTO bulk_change_pushes (change_id, push_id, recipient_key, send_at)
			SELECT $1, * FROM unnest($2::uuid[], $3::bigint[], $4::timestamptz[]) ON CONFLICT DO NOTHING`, id, ids, keys, times)
		if err != nil {
			return err
		}
		if next == nil {
			_, err = tx.Exec(ctx, listedSQL, id)
		} else {
			_, err = tx.Exec(ctx, `UPDATE bulk_changes SET updated_at = clock_timestamp(), found = found + $2, after_at = $3, after_id = $4 WHERE id = $1`,
				id, tag.RowsAffected(), next.SendAt, next.ID)
		}
		failpoint.Hit(failpoint.BulkListed)
		return err
	})
}

// listedSQL ends the listing of a bulk change. It counts all pushes, because moves have added some.
const listedSQL = `
	WITH outside AS (DELETE FROM bulk_change_pushes WHERE change_id = $1 AND outcome = 'outside')
	UPDATE bulk_changes SET updated_at = clock_timestamp(), listed = true,
		found = (SELECT count(*) FROM bulk_change_pushes WHERE change_id = $1 AND outcome <> 'outside') WHERE id = $1`

// awaitEarlier waits until the transactions have ended that move pushes without knowing a new bulk change. It gives up after as long as a
// transaction may take.
func (s *Store) awaitEarlier(ctx context.Context, id uuid.UUID) error {
	left, err := pg.Collect(ctx, s.db, pgx.RowTo[time.Duration], `SELECT created_at + $2::interval - clock_timestamp() FROM bulk_changes WHERE id = $1`, id, s.db.Cfg.Timeout)
	if err != nil || len(left) == 0 || left[0] <= 0 {
		return err
	}
	return s.db.AwaitWriters(ctx, left[0])
}

// bulkPage reads the pushes that a bulk change applies to, after a position. next is the position to continue from;
// nil means that there are no more.
func (s *Store) bulkPage(ctx context.Context, c pg.Reader, p *bulkchange.Change, after push.Position) (found []bulkchange.Push, next *push.Position, err error) {
	f, until := p.Filter, p.Filter.Until
	f.Status = push.Scheduled
	if p.Action == bulkchange.Cancel { // what is being sent may have to be sent again
		f.Status = pushes.NotEnded
	}
	if f.From.After(after.SendAt) {
		after = push.Position{SendAt: f.From}
	}
	if until.IsZero() {
		until = booking.EndOfTime
	}
	if err := s.pushes.CheckTables(ctx, c, after.SendAt, until); err != nil {
		return nil, nil, err
	}
	for tables := range slices.Chunk(s.db.Layouts.Pushes().Between(after.SendAt, until), pg.TablesAtOnce) {
		q := pushes.ListQuery(f, p.Tenant, after, scannedPerStep, scannedPerStep, tables)
		q.Args = append(q.Args, p.CreatedAt)
		rows, _ := c.Query(ctx, pg.In(`
			SELECT s.id, s.send_at, coalesce(s.fits AND p.created_at <= `+fmt.Sprintf("$%d", len(q.Args))+`, false), coalesce(p.recipient_key, 0)
			FROM (`+q.Scanned+`) s LEFT JOIN {pushes} p ON p.id = s.id AND p.send_at = s.send_at ORDER BY s.send_at, s.id`, "{pushes}", tables...), q.Args...)
		var (
			one  bulkchange.Push
			fits bool
			n    int
		)
		_, err := pgx.ForEachRow(rows, []any{&one.ID, &one.SendAt, &fits, &one.RecipientKey}, func() error {
			if n++; fits {
				found = append(found, one)
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
		if n >= q.Scan || len(found) >= scannedPerStep {
			return found, &push.Position{SendAt: one.SendAt, ID: one.ID}, nil
		}
	}
	return found, nil, nil
}

// CountBulk counts the pushes that a bulk change would apply to, and returns the first of them as a sample. It stops
// after about limit pushes, and then reports more.
func (s *Store) CountBulk(ctx context.Context, p bulkchange.Change, limit, sample int) (n int, more bool, some []bulkchange.Push, err error) {
	err = s.db.Read(ctx, p.Tenant, func(ctx context.Context, c pg.Reader) error {
		n, more, some = 0, false, nil
		var after push.Position
		for scanned := 0; scanned < limit; scanned += scannedPerStep {
			found, next, err := s.bulkPage(ctx, c, &p, after)
			if err != nil {
				return err
			}
			n += len(found)
			some = append(some, found[:min(len(found), sample-len(some))]...)
			if next == nil {
				return nil
			}
			after = *next
		}
		more = true
		return nil
	})
	return n, more, some, err
}

// UndecidedBulk returns up to limit pushes that a bulk change has to change next, in their order. It leaves out those that
// were being sent a moment ago.
func (s *Store) UndecidedBulk(ctx context.Context, p *bulkchange.Change, limit int) ([]bulkchange.Push, error) {
	order := `send_at, push_id`
	if p.Backwards() {
		order = `send_at DESC, push_id DESC`
	}
	return pg.Collect(ctx, s.db, pgx.RowToStructByPos[bulkchange.Push], `SELECT push_id, recipient_key, send_at, outcome, rules, coalesce(sending_since, `+pg.NoTime+`), false
		FROM bulk_change_pushes WHERE change_id = $1 AND outcome = '' AND (again_at <= statement_timestamp()) IS NOT FALSE ORDER BY `+order+` LIMIT $2`,
		p.ID, limit)
}

// sendingPause is the time after which a push that was being sent is looked at again.
const sendingPause = 250 * time.Millisecond

// RecordBulk records the outcomes of pushes of a bulk change, and which of them are being sent. Outcomes that were recorded
// before stay.
func (s *Store) RecordBulk(ctx context.Context, id uuid.UUID, decided []bulkchange.Push) error {
	return s.bulkStep(ctx, id, func(ctx context.Context, _ *pgxpool.Conn, tx pgx.Tx, p *bulkchange.Change, _ push.Position) error {
		b := &pgx.Batch{}
		for _, one := range decided {
			if one.Sending {
				b.Queue(`UPDATE bulk_change_pushes SET sending_since = coalesce(sending_since, clock_timestamp()), again_at = clock_timestamp() + $3::interval
					WHERE change_id = $1 AND push_id = $2 AND outcome = ''`, id, one.ID, sendingPause)
				continue
			}
			b.Queue(`UPDATE bulk_change_pushes SET outcome = $3, rules = $4 WHERE change_id = $1 AND push_id = $2 AND outcome = ''`, id, one.ID, one.Outcome, one.Rules).
				Exec(func(tag pgconn.CommandTag) error {
					switch {
					case tag.RowsAffected() == 0:
					case one.Outcome == bulkchange.Changed:
						p.Changed++
					default:
						p.Refused[one.Outcome]++
					}
					return nil
				})
		}
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		refused, err := json.Marshal(p.Refused)
		if err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `UPDATE bulk_changes SET updated_at = clock_timestamp(), changed = $2, refused = $3 WHERE id = $1`, id, p.Changed, refused)
		failpoint.Hit(failpoint.BulkNoted)
		return err
	})
}

// EndBulk ends a bulk change if it was canceled, or if all of its pushes are listed and decided. It reports whether
// the change has ended. If all pushes that are left are being sent, workers take the change again in a moment.
func (s *Store) EndBulk(ctx context.Context, id uuid.UUID) (ended bool, err error) {
	ended = true
	err = s.bulkStep(ctx, id, func(ctx context.Context, _ *pgxpool.Conn, tx pgx.Tx, p *bulkchange.Change, _ push.Position) error {
		status := bulkchange.Done
		if p.Status == bulkchange.Canceling {
			status = bulkchange.Canceled
		} else {
			err := tx.QueryRow(ctx, `SELECT $2 AND NOT EXISTS (SELECT FROM bulk_change_pushes WHERE change_id = $1 AND outcome = '')`, id, p.Listed).Scan(&ended)
			if err == nil && !ended && p.Listed {
				_, err = tx.Exec(ctx, `UPDATE bulk_changes SET worker = NULL, lease_until = NULL, resume_at = (SELECT min(coalesce(again_at, '-infinity')) FROM bulk_change_pushes WHERE change_id = $1 AND outcome = '') WHERE id = $1`, id)
			}
			if err != nil || !ended {
				return err
			}
		}
		_, err := tx.Exec(ctx, `UPDATE bulk_changes SET status = $2, updated_at = clock_timestamp(), ended_at = clock_timestamp(), worker = NULL, lease_until = NULL WHERE id = $1`, id, string(status))
		failpoint.Hit(failpoint.BulkEnded)
		return err
	})
	return ended, err
}

// SweepBulk deletes up to about limit rows of bulk changes that ended longer ago than keep. It returns the number of
// deleted rows.
func (s *Store) SweepBulk(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `
			DELETE FROM bulk_change_pushes p WHERE (p.change_id, p.push_id) IN (
				SELECT r.change_id, r.push_id FROM (SELECT id FROM bulk_changes WHERE ended_at < statement_timestamp() - $1::interval ORDER BY ended_at LIMIT 10) b
				JOIN bulk_change_pushes r ON r.change_id = b.id LIMIT $2)`, keep, limit)
		if n = int(tag.RowsAffected()); err != nil || n >= limit {
			return err
		}
		tag, err = c.Exec(ctx, `
			DELETE FROM bulk_changes WHERE id IN (SELECT id FROM bulk_changes b WHERE ended_at < statement_timestamp() - $1::interval
				AND NOT EXISTS (SELECT FROM bulk_change_pushes p WHERE p.change_id = b.id) ORDER BY ended_at LIMIT 10)`, keep)
		n += int(tag.RowsAffected())
		return err
	})
	return n, err
}
