// Package campaigns has the operations of the REST API on campaigns: drafts, audiences, previews, simulations and recipients.
package campaigns

import (
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Campaigns"

// campaigns serves campaigns, their audiences and their recipients.
type campaigns struct {
	svc     *campaign.Service
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// zoneReader reads the default zone of a tenant's policy.
type zoneReader interface {
	DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error)
}

// simulations serves simulations, estimates and previews of drafts.
type simulations struct {
	svc       *campaign.Service
	simulator *campaign.Simulator
	zones     zoneReader
	turns     *bulkhead.Bulkhead[uuid.UUID]
}

// Operations returns the operations on campaigns.
func Operations(s *rest.Spec, svc *campaign.Service, simulator *campaign.Simulator, zones zoneReader, exports, turns *bulkhead.Bulkhead[uuid.UUID]) []rest.Operation {
	c, sim := &campaigns{svc, exports}, &simulations{svc, simulator, zones, turns}
	return slices.Concat(c.routes(s, sim), c.actionRoutes(s), c.recipientRoutes(s), sim.routes(s), sim.capacityRoutes(s))
}
