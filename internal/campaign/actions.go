package campaign

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Act starts, pauses, resumes or cancels a campaign, and returns it as it is then. If that has been done before, it changes nothing. Workers
// do the rest. From now on no recipient of a campaign that is paused or canceled is booked, and no attempt begins. A start
// says what is not possible any more of what the draft says, with [invalid.FieldErrors]. Other errors are [push.ErrNotFound],
// [*push.CampaignStateError] and, of a campaign that was changed, [*push.StaleError].
func (s *Service) Act(ctx context.Context, tenant, id uuid.UUID, action push.CampaignAction, unchanged push.Unchanged) (push.Campaign, error) {
	check := func(p push.Campaign) error {
		if err := unchanged.Check(p.UpdatedAt); err != nil || action != push.CampaignStart {
			return err
		}
		return s.checkStart(p)
	}
	return s.store.ActOnCampaign(ctx, tenant, id, action, check)
}

// checkStart says what is not possible any more of what a draft says.
func (s *Service) checkStart(p push.Campaign) error {
	if p.SendAt.IsZero() && p.LocalTime.IsZero() && p.Spread > 0 { // it is sent from now on
		p.SendAt = s.now().UTC().Truncate(quota.Second)
	}
	return s.Check(Change{Channel: &p.Channel, SendAt: &p.SendAt, LocalTime: &p.LocalTime, Latest: &p.Latest}, p).Err()
}
