package campaigns

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// CampaignStat returns the numbers of a campaign of all time. For tests.
func (s *Store) CampaignStat(ctx context.Context, tenant, campaign uuid.UUID) (n push.Stat, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		n, err = campaignStat(ctx, c, tenant, campaign)
		return err
	})
	return n, err
}
