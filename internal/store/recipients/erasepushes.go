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

// ended erases the pushes that do not wait.
func (e *erasure) ended(ctx context.Context) error {
	for _, table := range e.tables() {
		for _, freed := range []bool{false, true} {
			if err := e.pushesIn(ctx, table, freed); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables are those of pushes.
func (e *erasure) tables() []string {
	if p := e.db.Layouts.Pushes(); len(p.Others) == 0 {
		return p.Between(time.Time{}, booking.EndOfTime)
	}
	return []string{pg.WeeksOfPushes.Parent}
}

func (e *erasure) pushesIn(ctx context.Context, table string, freed bool) error {
	var last push.Position
	for done := false; !done; {
		var (
			rows int
			next push.Position
		)
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows, next = 0, last
			found, n, err := e.theirs(ctx, c, table, freed, &next)
			if done = n < erasedAtOnce; err != nil || len(found) == 0 {
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
				events, err := e.events(ctx, c, found, booking.EndOfTime)
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

// theirs finds pushes of the recipient behind a position, which it moves. It returns how many rows it has looked at, too.
func (e *erasure) theirs(ctx context.Context, c *pgxpool.Conn, table string, freed bool, after *push.Position) (found []pushes.LiveRow, n int, err error) {
	rows, _ := c.Query(ctx, pg.In(theirsSQL, "{pushes}", table),
		e.key, e.who.Tenant, e.who.ID, e.until, freed, after.SendAt, after.ID, erasedAtOnce, e.shards)
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

// since finds what was booked meanwhile, for one who came back.
func (e *erasure) since(ctx context.Context) error {
	return e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		e.later = []uuid.UUID{}
		for i, table := range e.tables() {
			var (
				at   time.Time
				some []uuid.UUID
			)
			err := c.QueryRow(ctx, pg.In(sinceSQL, "{pushes}", table), e.key, e.who.Tenant, e.who.ID, e.shards).Scan(&at, &some)
			if err != nil {
				return err
			}
			if e.later = append(e.later, some...); i == 0 {
				e.looked = at
			}
		}
		return nil
	})
}

// sendsAtOnce is of how many days one exchange erases the attempts.
const sendsAtOnce = 16

// sends erases the attempts.
func (e *erasure) sends(ctx context.Context) error {
	tables := []string{pg.DaysOfSends.Parent}
	if s := e.db.Layouts.Sends(); len(s.Others) == 0 {
		_, now := e.db.Layouts.Now()
		tables = s.Between(time.Time{}, now.Add(pg.ClockGap))
	}
	for some := range slices.Chunk(tables, sendsAtOnce) {
		rows := 0
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			rows = 0
			b := &pgx.Batch{}
			for _, table := range some {
				b.Queue(pg.In(eraseSendsSQL, "{sends}", table), e.key, e.who.Tenant, e.who.ID, e.shards, e.looked, e.later)
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
