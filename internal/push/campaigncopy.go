package push

import (
	"errors"

	"github.com/google/uuid"
)

// CampaignCopy is a campaign that is to be made of another one, with its recipients, and started.
type CampaignCopy struct {
	ID     uuid.UUID // of the new one
	Tenant uuid.UUID
	Of     uuid.UUID // a draft, or a campaign that has finished
	Suffix string    // of its name
	Caps   OwnCaps   // of the tenant
}

// ErrNothingToCopy says that there is no audience, or that all of its recipients were erased.
var ErrNothingToCopy = errors.New("the campaign has no recipients")
