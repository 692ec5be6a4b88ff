package schedule

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// recordReader reads what has happened.
type recordReader interface {
	Sends(ctx context.Context, tenant uuid.UUID, f push.SendFilter, after push.SendPosition, limit int) (push.SendPage, error)
}

// Sends returns up to limit of a tenant's attempts that have ended, behind a position, in the order in which they began.
func (s *Service) Sends(ctx context.Context, tenant uuid.UUID, f push.SendFilter, after push.SendPosition, limit int) (push.SendPage, error) {
	return s.store.Sends(ctx, tenant, f, after, limit)
}
