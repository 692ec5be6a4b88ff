// Package pushes has the operations of the REST API on pushes, bulk changes, quotas and caps. It decides nothing about quotas.
// The form of a push, which other packages use, is in fields.go and form.go.
package pushes

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The groups of these operations in the documentation.
const (
	TagPushes = "Pushes"
	TagQuota  = "Quota"
)

// pushWriter books and changes pushes.
type pushWriter interface {
	Submit(ctx context.Context, tenant uuid.UUID, r schedule.Request, o schedule.Options) (booking.Decision, error)
	SubmitBatch(ctx context.Context, tenant uuid.UUID, members []schedule.Member, atomic bool, o schedule.Options) error
	Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	Reschedule(ctx context.Context, tenant, id uuid.UUID, to schedule.When, o schedule.Options) (booking.Decision, error)
	Retry(ctx context.Context, tenant, id uuid.UUID, r schedule.Request, o schedule.Options) (booking.Decision, error)
}

// pushReader reads pushes.
type pushReader interface {
	Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error)
}

// pushes serves single pushes, batches and the list of pushes.
type pushes struct {
	writer pushWriter
	reader pushReader
	forms  Forms
	texts  TextService
}

// quotaService reads the quotas of recipients.
type quotaService interface {
	Check(ctx context.Context, tenant uuid.UUID, r schedule.Request) (*schedule.Answer, error)
	Quota(ctx context.Context, r quota.Recipient, kind quota.Kind, at time.Time) ([]quota.Usage, *schedule.Answer, error)
	Slots(ctx context.Context, r quota.Recipient, kind quota.Kind, from, until time.Time) (schedule.Slots, error)
	Availability(ctx context.Context, r quota.Recipient, kind quota.Kind, from, until time.Time, without uuid.UUID) (schedule.Availability, error)
	Channels(tenant uuid.UUID) []string
}

// quotas serves questions about the quotas of recipients.
type quotas struct {
	svc   quotaService
	forms Forms
	texts TextService
}

// capUsage counts the use of a tenant's caps.
type capUsage interface {
	CapUsage(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, day booking.Day, most int) (booking.CapUsage, error)
}

// caps serves the caps of a tenant.
type caps struct {
	usage     capUsage
	audiences *campaign.Service
}

// bulkChanges serves bulk changes.
type bulkChanges struct{ svc *bulk.Service }
