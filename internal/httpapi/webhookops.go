package httpapi

import (
	"slices"

	"github.com/sendquota/sendquota/internal/notify"
)

// The group of these operations in the documentation.
const tagWebhooks = "Webhooks"

// webhooks serves webhooks and their deliveries.
type webhooks struct{ svc *notify.Webhooks }

// webhookOperations returns the operations on webhooks.
func webhookOperations(s *spec, svc *notify.Webhooks) []operation {
	h := &webhooks{svc}
	return slices.Concat(h.routes(s), h.deliveryRoutes(s))
}
