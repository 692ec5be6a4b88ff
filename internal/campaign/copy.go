package campaign

import (
	"context"
	"errors"
	"fmt"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
)

// copies stores copies of campaigns.
type copies interface {
	CopyAudience(ctx context.Context, c broadcast.Copy, most int) (whole bool, err error)
	MakeCopy(ctx context.Context, c broadcast.Copy, most int) error
}

// StartCopy makes progress on starting a copy of a campaign, with the recipients that the original has at the first
// call. Any worker may call it, until it is done; repeated steps change nothing.
//
// The errors are [push.ErrNotFound], [*broadcast.StateError], [broadcast.ErrNothingToCopy], [broadcast.ErrTooMany], a
// [*booking.Capped] and [invalid.FieldErrors]. They leave no campaign.
func (s *Service) StartCopy(ctx context.Context, c broadcast.Copy) (done bool, err error) {
	whole, err := s.copies.CopyAudience(ctx, c, c.Caps.Bytes(s.cfg.TenantBytes))
	if err != nil {
		return false, fmt.Errorf("copy audience: %w", err)
	}
	if !whole {
		return false, nil
	}
	if err := s.copies.MakeCopy(ctx, c, s.cfg.MaxPerTenant); err != nil {
		return false, fmt.Errorf("copy campaign: %w", err)
	}
	_, err = s.Act(ctx, c.Tenant, c.ID, broadcast.Start, nil)
	var (
		state *broadcast.StateError
		wrong invalid.FieldErrors
	)
	if errors.As(err, &state) && state.Campaign.Status != broadcast.Draft {
		return true, nil // it was started before, and a caller has changed its state since
	}
	if errors.As(err, &wrong) {
		if err := s.DeleteDraft(ctx, c.Tenant, c.ID); err != nil && !errors.Is(err, push.ErrNotFound) {
			return false, fmt.Errorf("delete campaign: %w", err)
		}
	}
	if err != nil {
		return false, fmt.Errorf("start campaign: %w", err)
	}
	return true, nil
}
