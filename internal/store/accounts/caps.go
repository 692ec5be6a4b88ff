package accounts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
)

// Pending counts up to most of a tenant's pushes that are scheduled or being sent.
func (s *Store) Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error) {
	return s.count(ctx, tenant, `
		SELECT count(*) FROM (
			SELECT FROM live WHERE tenant_id = $1 LIMIT $2
		) l`, most)
}

// Recipients counts up to most of a tenant's recipients who have a push on a day that is scheduled, being sent or
// sent. It reads all of that day's pushes.
func (s *Store) Recipients(ctx context.Context, tenant uuid.UUID, day booking.Day, most int) (int, error) {
	begin, end := day.Begin(), (day + 1).Begin()
	return s.count(ctx, tenant, `
		SELECT count(*) FROM (
			SELECT DISTINCT recipient_key FROM (
				SELECT recipient_key, status FROM {pushes} p WHERE tenant_id = $1 AND send_at >= $3 AND send_at < $4
				OFFSET 0 -- keeps the next line from choosing another index
			) p
			WHERE status IN ('scheduled', 'sent') LIMIT $2
		) r`, most, begin, end)
}

// count runs a counting statement with the arguments tenant and most. The times of between, if given, follow as its
// last arguments, and select the partitions of {pushes}; the second time is exclusive.
func (s *Store) count(ctx context.Context, tenant uuid.UUID, sql string, most int, between ...time.Time) (n int, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		args := []any{tenant, most}
		if len(between) > 0 {
			sql = pg.In(sql, "{pushes}", s.db.Layouts.Pushes().All(between[0], between[1].Add(-1))...)
			args = append(args, between[0], between[1])
		}
		rows, _ := c.Query(ctx, sql, args...)
		n, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[int])
		return err
	})
	return n, err
}
