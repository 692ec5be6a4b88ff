// Package recipients has the operations of the REST API on recipients: their descriptions, imports and timelines.
package recipients

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The group of these operations in the documentation.
const Tag = "Recipients"

// describer checks and stores descriptions of recipients.
type describer interface {
	CheckDescription(tenant uuid.UUID, d booking.Description) invalid.FieldErrors
	Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error)
}

// recipientService keeps descriptions of recipients.
type recipientService interface {
	describer
	Description(ctx context.Context, r quota.Recipient) (booking.Description, error)
	Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) ([]booking.Description, bool, error)
	Erase(ctx context.Context, r quota.Recipient) (booking.Erased, error)
}

// recipients serves the descriptions of recipients.
type recipients struct{ svc recipientService }

// timelineService reads the events of a recipient.
type timelineService interface {
	Timeline(ctx context.Context, r quota.Recipient, from, until time.Time) (events []schedule.Event, all bool, err error)
}

// timelines serves the timelines of recipients.
type timelines struct{ svc timelineService }

// Operations returns the operations on recipients.
func Operations(s *rest.Spec, svc *schedule.Service) []rest.Operation {
	return slices.Concat((&recipients{svc}).routes(s), (&imports{svc}).routes(s), (&timelines{svc}).routes(s))
}
