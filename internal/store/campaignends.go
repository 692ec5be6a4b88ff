package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/push"
)

// fillEnds takes what has ended of a campaign's pushes out of those that are scheduled. It must see what was read of the
// campaign: its row is locked, or both are of one snapshot.
func (s *Store) fillEnds(ctx context.Context, c batcher, p *push.Campaign) error {
	if p.Progress.Scheduled == 0 || p.Status.Over() {
		return nil
	}
	n, err := campaignStat(ctx, c, p.Tenant, p.ID)
	if err == nil {
		is := &p.Progress
		is.Scheduled -= n.Sent + n.Failed + n.Expired + n.Canceled
		is.Sent, is.Failed, is.Expired, is.Canceled = n.Sent, n.Failed, n.Expired, is.Canceled+n.Canceled
	}
	return err
}

// ended is how many recipients of a campaign have come to an end.
func ended(p *push.CampaignProgress) int64 { return p.Audience - p.Pending - p.Scheduled }
