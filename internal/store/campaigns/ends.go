package campaigns

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/records"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/broadcast"
)

// fillEnds moves the pushes that have ended from the scheduled count to the counts of their outcomes, and reads whether
// sending has begun. The campaign must have been read in the same snapshot, or its row must be locked.
func (s *Store) fillEnds(ctx context.Context, c pg.Batcher, p *broadcast.Campaign) error {
	if p.Progress.Scheduled == 0 || p.Status.Over() {
		return nil
	}
	n, err := records.CampaignStat(ctx, c, p.Tenant, p.ID)
	if err != nil {
		return err
	}
	is := &p.Progress
	is.Scheduled -= n.Sent + n.Failed + n.Expired + n.Canceled
	is.Sent, is.Failed, is.Expired, is.Canceled = n.Sent, n.Failed, n.Expired, is.Canceled+n.Canceled
	p.Segments = n.Segments
	if p.Begun = n.Sent+n.Failed+n.Expired > 0; p.Begun {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(campaignBegunSQL, p.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Begun) })
	return c.SendBatch(ctx, b).Close()
}

// campaignBegunSQL reports whether a push of a campaign is due, under way or tried. It reads only the pushes that become
// due first, because a campaign may have a million. Parked pushes never become due, and count by their send time.
const campaignBegunSQL = `
	SELECT coalesce(bool_or(attempts > 0 OR least(next_at, CASE WHEN next_at = 'infinity' THEN send_at END) <= clock_timestamp()), false)
	FROM (SELECT attempts, next_at, send_at FROM live WHERE campaign_id = $1 ORDER BY next_at LIMIT 100) first`

// ended returns how many recipients of a campaign have ended.
func ended(p *broadcast.Progress) int64 { return p.Audience - p.Pending - p.Scheduled }
