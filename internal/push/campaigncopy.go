package push

import (
	"errors"

	"github.com/google/uuid"
)

// CampaignCopy is a campaign to create and start as a copy of another one, with its recipients.
type CampaignCopy struct {
	ID     uuid.UUID // the new campaign
	Tenant uuid.UUID
	Of     uuid.UUID // a draft or a finished campaign
	Suffix string    // appended to the name
	Caps   OwnCaps   // the tenant's caps
}

// ErrNothingToCopy: there is no audience, or all of its recipients were erased.
var ErrNothingToCopy = errors.New("the campaign has no recipients")
