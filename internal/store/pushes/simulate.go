package pushes

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// CampaignClock returns the time of Postgres' clock, and whether the tenant has ever started a campaign. If not, no
// booking belongs to one.
func (s *Store) CampaignClock(ctx context.Context, tenant uuid.UUID) (now time.Time, started bool, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `SELECT clock_timestamp(), EXISTS (SELECT FROM campaigns WHERE tenant_id = $1 AND started_at IS NOT NULL)`, tenant)
		_, err := pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) { return struct{}{}, row.Scan(&now, &started) })
		return err
	})
	return now, started, err
}

// campaignsOfSQL reads the campaigns of pushes.
const campaignsOfSQL = `
	SELECT p.id, p.campaign_id FROM {pushes} p
	WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[]) AND p.campaign_id IS NOT NULL`

// CampaignsOf returns the campaigns of bookings, by push id. The bookings' recipients are in one lane. Bookings without a
// campaign are left out.
func (s *Store) CampaignsOf(ctx context.Context, tenant uuid.UUID, shards push.Lane, bookings []quota.Booking) (of map[uuid.UUID]uuid.UUID, err error) {
	if len(bookings) == 0 {
		return nil, nil
	}
	var in16 []int16
	for _, shard := range pg.ShardsIn([]push.Lane{shards}) {
		in16 = append(in16, int16(shard))
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		of = make(map[uuid.UUID]uuid.UUID, len(bookings))
		b := &pgx.Batch{}
		for table, some := range pg.ByTable(bookings, func(b quota.Booking) string { return s.db.Layouts.Pushes().At(b.At) }) {
			ids := make([]uuid.UUID, len(some))
			for n, i := range some {
				ids[n] = bookings[i].ID
			}
			b.Queue(pg.In(s.db.Joining(campaignsOfSQL), "{pushes}", table), ids, in16).Query(func(rows pgx.Rows) error { return pg.Fill(of, rows) })
		}
		return c.SendBatch(ctx, b).Close()
	})
	return of, err
}

// CampaignNames returns the names of a tenant's campaigns.
func (s *Store) CampaignNames(ctx context.Context, tenant uuid.UUID, campaigns []uuid.UUID) (names map[uuid.UUID]string, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		names = make(map[uuid.UUID]string, len(campaigns))
		rows, _ := c.Query(ctx, `SELECT id, name FROM campaigns WHERE id = ANY ($1::uuid[]) AND tenant_id = $2`, campaigns, tenant)
		return pg.Fill(names, rows)
	})
	return names, err
}
