package pushes

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/store/pg"
)

// counted records the statements of batches.
type counted struct {
	pg.Batcher
	asked []string
}

func (c *counted) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	for _, q := range b.QueuedQueries {
		c.asked = append(c.asked, q.SQL)
	}
	return c.Batcher.SendBatch(ctx, b)
}

// AskedForPush returns the statements that read a push for a tenant, and their error.
func (s *Store) AskedForPush(ctx context.Context, tenant, id uuid.UUID) (asked []string, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		count := &counted{Batcher: c}
		_, err := s.readPush(ctx, count, tenant, id)
		asked = count.asked
		return err
	})
	return asked, err
}
