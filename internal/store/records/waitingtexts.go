package records

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/store/pg"
)

const (
	// sampled is the number of waiting pushes of each rank whose messages are read.
	sampled = 100
	// longestDue is how far back the messages of due pushes are searched.
	longestDue = 14 * 24 * time.Hour
)

// sampleSQL reads the messages of some due pushes of each rank, the longest due first.
const sampleSQL = `
	SELECT k.phase / 2, p.message FROM ` + pg.Ranks + ` CROSS JOIN LATERAL (
		SELECT push_id, send_at, shard FROM live WHERE {of} AND phase = k.phase AND next_at <= statement_timestamp() ORDER BY next_at LIMIT $2
	) l CROSS JOIN LATERAL (SELECT message FROM {pushes} p WHERE p.id = l.push_id AND p.send_at = l.send_at AND p.shard = l.shard OFFSET 0) p`

// WaitingMessages returns the messages of some pushes that are due and wait for a channel: a tenant's own one, or with [uuid.Nil]
// the operator's one, of all tenants.
func (s *Store) WaitingMessages(ctx context.Context, tenant uuid.UUID, channel string) (sample channelhealth.Sample, err error) {
	of, args := `channel = $1`, []any{channel, sampled}
	if tenant != uuid.Nil {
		of, args = `own_channel = $1 AND tenant_id = $3 AND channel = '`+booking.OwnRoute+`'`, append(args, tenant)
	}
	now := time.Now()
	sql := pg.In(pg.In(sampleSQL, "{of}", of), "{pushes}", s.db.Layouts.Pushes().All(now.Add(-longestDue), now)...)
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		sample = channelhealth.Sample{}
		rows, _ := c.Query(ctx, sql, args...)
		var (
			level   int
			message []byte
		)
		_, err := pgx.ForEachRow(rows, []any{&level, &message}, func() error {
			sample[level] = append(sample[level], slices.Clone(message))
			return nil
		})
		return err
	})
	return sample, err
}
