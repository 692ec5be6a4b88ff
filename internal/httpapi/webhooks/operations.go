package webhooks

import (
	"slices"

	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Webhooks"

// webhooks serves webhooks and their deliveries.
type webhooks struct{ svc *notify.Webhooks }

// Operations returns the operations on webhooks.
func Operations(s *rest.Spec, svc *notify.Webhooks) []rest.Operation {
	h := &webhooks{svc}
	return slices.Concat(h.routes(s), h.deliveryRoutes(s))
}
