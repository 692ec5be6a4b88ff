package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// campaignEnds are the pushes of a campaign by what became of them. Those that wait, or are under way, have a row in live.
type campaignEnds struct{ live, sent, failed, expired int64 }

// campaignEndsSQL counts in one snapshot. What was sent, failed or expired was due.
const campaignEndsSQL = `
	SELECT (SELECT count(*) FROM live WHERE campaign_id = $2), count(*) FILTER (WHERE p.status = 'sent'),
		count(*) FILTER (WHERE p.status = 'failed'), count(*) FILTER (WHERE p.status = 'expired')
	FROM campaign_recipients r CROSS JOIN LATERAL (SELECT status FROM {pushes} p WHERE p.id = r.push_id AND p.status IN ('sent', 'failed', 'expired') OFFSET 0) p
	WHERE r.audience_id = $1 AND r.push_id IS NOT NULL`

// readEnds counts the ends of a campaign's pushes.
func (s *Store) readEnds(ctx context.Context, c querier, p *push.Campaign) (e campaignEnds, err error) {
	tables := s.layouts.pushes().all(p.StartedAt.Add(-25*time.Hour), time.Now().Add(clockMargin))
	rows, _ := c.Query(ctx, in(campaignEndsSQL, "{pushes}", tables...), [16]byte(p.Audience), [16]byte(p.ID))
	_, err = pgx.ForEachRow(rows, []any{&e.live, &e.sent, &e.failed, &e.expired}, func() error { return nil })
	return e, err
}

// fillEnds takes what has ended of a campaign's pushes out of those that are scheduled. It must see what was read of the
// campaign: its row is locked, or both are of one snapshot.
func (s *Store) fillEnds(ctx context.Context, c querier, p *push.Campaign) error {
	if p.Progress.Scheduled == 0 || p.Status.Over() {
		return nil
	}
	e, err := s.readEnds(ctx, c, p)
	if err == nil {
		e.fill(&p.Progress)
	}
	return err
}

// fill takes what has ended out of what was booked.
func (e campaignEnds) fill(p *push.CampaignProgress) {
	booked := p.Scheduled
	p.Scheduled, p.Sent, p.Failed, p.Expired = e.live, e.sent, e.failed, e.expired
	p.Canceled += booked - e.live - e.sent - e.failed - e.expired
}

// ended is how many recipients of a campaign have come to an end.
func ended(p *push.CampaignProgress) int64 { return p.Audience - p.Pending - p.Scheduled }
