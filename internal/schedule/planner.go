package schedule

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Planner turns requests into drafts: it checks them, renders their templates, and computes their send times.
type Planner struct {
	store planStore
	cfg   Config
	now   func() time.Time
}

// planStore reads what plans need to know of recipients.
type planStore interface {
	Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error)
	Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (booking.Terms, map[string]booking.Person, error)
	Attributes(ctx context.Context, tenant uuid.UUID, ids []string) (map[string]json.RawMessage, error)
	Paused(p *push.Push, now time.Time) bool
}

// DefaultZone returns the name of the default time zone under the tenant's current policy.
func (pl *Planner) DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error) {
	of, err := pl.store.Standing(ctx, quota.Recipient{Tenant: tenant}, pl.cfg.Policy)
	if err != nil {
		return "", fmt.Errorf("default zone: %w", err)
	}
	if terms, ok := of.Terms.(interface{ DefaultZone() *time.Location }); ok {
		return terms.DefaultZone().String(), nil
	}
	return "UTC", nil
}

// paused reports whether a pause stops a push now. Call it after a transaction of the tenant: that has found the pauses in
// force.
func (pl *Planner) paused(p *push.Push) bool { return pl.store.Paused(p, pl.now()) }

// unknownChannel returns the fault of a channel that is not configured.
func unknownChannel(channels []string) string {
	return "unknown channel; the channels are: " + strings.Join(channels, ", ")
}
