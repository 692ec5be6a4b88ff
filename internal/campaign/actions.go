package campaign

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Act starts, pauses, resumes or cancels a campaign, and returns its new state. Repeating an action changes nothing.
// Workers do the rest. After a pause or a cancel, no recipient of the campaign is booked, and no attempt begins. A
// start returns [invalid.FieldErrors] for values of the draft that are no longer possible. Other errors are
// [push.ErrNotFound], [*push.CampaignStateError] and, if the campaign has changed, [*push.StaleError].
func (s *Service) Act(ctx context.Context, tenant, id uuid.UUID, action push.CampaignAction, unchanged push.Unchanged) (push.Campaign, error) {
	check := func(p push.Campaign) error {
		if err := unchanged.Check(p.UpdatedAt); err != nil || action != push.CampaignStart {
			return err
		}
		return s.checkStart(p)
	}
	return s.store.ActOnCampaign(ctx, tenant, id, action, check)
}

// checkStart returns the faults of a draft that is to start now.
func (s *Service) checkStart(p push.Campaign) error {
	if p.SendAt.IsZero() && p.LocalTime.IsZero() && p.Spread > 0 { // it is sent from now on
		p.SendAt = s.now().UTC().Truncate(quota.Second)
	}
	return s.Check(Change{Channel: &p.Channel, SendAt: &p.SendAt, LocalTime: &p.LocalTime, Latest: &p.Latest}, p).Err()
}
