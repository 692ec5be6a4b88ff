package recipients

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// erasePushes erases the pushes that do not wait.
func (e *erasure) erasePushes(ctx context.Context) error {
	for _, table := range e.pushTables() {
		for _, freed := range []bool{false, true} {
			if err := e.eraseTable(ctx, table, freed); err != nil {
				return err
			}
		}
	}
	return nil
}

// pushTables returns the tables of pushes: the partitions if all are known, or else their parent.
func (e *erasure) pushTables() []string {
	if p := e.db.Layouts.Pushes(); len(p.Others) == 0 {
		return p.Between(time.Time{}, booking.EndOfTime)
	}
	return []string{pg.WeeksOfPushes.Parent}
}

// eraseTable erases the recipient's pushes in one table; freed selects one half of its index.
func (e *erasure) eraseTable(ctx context.Context, table string, freed bool) error {
	var last push.Position
	for done := false; !done; {
		var (
			rows int
			next push.Position
		)
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows, next = 0, last
			found, n, err := e.findPushes(ctx, c, table, freed, &next)
			if done = n < erasedPerTx; err != nil || len(found) == 0 {
				return err
			}
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				ids := make([]uuid.UUID, len(found))
				for i, l := range found {
					ids[i] = l.ID
				}
				tag, err := tx.Exec(ctx, pg.In(eraseSQL, "{pushes}", table), ids, e.shards)
				if err != nil {
					return err
				}
				events, err := e.eraseEvents(ctx, c, found, booking.EndOfTime)
				rows = int(tag.RowsAffected()) + events
				return err
			})
		})
		if err != nil {
			return err
		}
		e.Rows += rows
		last = next
	}
	return nil
}

// findPushes returns the recipient's pushes after a position, and moves the position on. n is the number of rows that
// it read.
func (e *erasure) findPushes(ctx context.Context, c *pgxpool.Conn, table string, freed bool, after *push.Position) (found []pushes.LiveRow, n int, err error) {
	rows, _ := c.Query(ctx, pg.In(findPushesSQL, "{pushes}", table),
		e.key, e.who.Tenant, e.who.ID, e.until, freed, after.SendAt, after.ID, erasedPerTx, e.shards)
	var (
		l     pushes.LiveRow
		their bool
	)
	_, err = pgx.ForEachRow(rows, []any{&l.SendAt, &l.ID, &their}, func() error {
		if n, *after = n+1, (push.Position{SendAt: l.SendAt, ID: l.ID}); their {
			found = append(found, l)
		}
		return nil
	})
	return found, n, err
}

// findNewer finds the pushes that were booked since the erasure began, for a recipient who came back.
func (e *erasure) findNewer(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		e.newer = []uuid.UUID{}
		for i, table := range e.pushTables() {
			var (
				at   time.Time
				some []uuid.UUID
			)
			err := c.QueryRow(ctx, pg.In(newerSQL, "{pushes}", table), e.key, e.who.Tenant, e.who.ID, e.shards).Scan(&at, &some)
			if err != nil {
				return err
			}
			if e.newer = append(e.newer, some...); i == 0 {
				e.newerAsOf = at
			}
		}
		return nil
	})
}

// sendDaysAtOnce is the number of days whose attempts one batch erases.
const sendDaysAtOnce = 16

// eraseSends erases the attempts.
func (e *erasure) eraseSends(ctx context.Context) error {
	tables := []string{pg.DaysOfSends.Parent}
	if s := e.db.Layouts.Sends(); len(s.Others) == 0 {
		_, now := e.db.Layouts.Now()
		tables = s.Between(time.Time{}, now.Add(pg.ClockGap))
	}
	for some := range slices.Chunk(tables, sendDaysAtOnce) {
		rows := 0
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows = 0
			b := &pgx.Batch{}
			for _, table := range some {
				b.Queue(pg.In(eraseSendsSQL, "{sends}", table), e.key, e.who.Tenant, e.who.ID, e.shards, e.newerAsOf, e.newer)
			}
			res := c.SendBatch(ctx, b)
			for range some {
				tag, err := res.Exec()
				if err != nil {
					_ = res.Close()
					return err
				}
				rows += int(tag.RowsAffected())
			}
			return res.Close()
		})
		if err != nil {
			return err
		}
		e.Rows += rows
	}
	return nil
}
