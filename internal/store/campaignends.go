package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// fillEnds takes what has ended of a campaign's pushes out of those that are scheduled, and reads whether its sending has begun. It must see what was read of the
// campaign: its row is locked, or both are of one snapshot.
func (s *Store) fillEnds(ctx context.Context, c batcher, p *push.Campaign) error {
	if p.Progress.Scheduled == 0 || p.Status.Over() {
		return nil
	}
	n, err := campaignStat(ctx, c, p.Tenant, p.ID)
	if err != nil {
		return err
	}
	is := &p.Progress
	is.Scheduled -= n.Sent + n.Failed + n.Expired + n.Canceled
	is.Sent, is.Failed, is.Expired, is.Canceled = n.Sent, n.Failed, n.Expired, is.Canceled+n.Canceled
	if p.Begun = n.Sent+n.Failed+n.Expired > 0; p.Begun {
		return nil
	}
	b := &pgx.Batch{}
	b.Queue(campaignBegunSQL, p.ID).QueryRow(func(row pgx.Row) error { return row.Scan(&p.Begun) })
	return c.SendBatch(ctx, b).Close()
}

// campaignBegunSQL reports whether a push of a campaign is due, is under way or has been tried. It reads only the first pushes to be
// due: a campaign may have a million. Parked pushes have no time to be due at, and count by their send time.
const campaignBegunSQL = `
	SELECT coalesce(bool_or(attempts > 0 OR least(next_at, CASE WHEN next_at = 'infinity' THEN send_at END) <= clock_timestamp()), false)
	FROM (SELECT attempts, next_at, send_at FROM live WHERE campaign_id = $1 ORDER BY next_at LIMIT 100) first`

// ended is how many recipients of a campaign have come to an end.
func ended(p *push.CampaignProgress) int64 { return p.Audience - p.Pending - p.Scheduled }
