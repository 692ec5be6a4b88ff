package schedule

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Submitted returns the push that an earlier submit with these options has made, if there is one. It submits nothing.
func (s *Service) Submitted(ctx context.Context, tenant uuid.UUID, o Options) (id uuid.UUID, made bool, err error) {
	p := push.Push{Tenant: tenant}
	identify(&p, o, "")
	all, err := s.store.Keyed(ctx, tenant, p.IdempotencyID)
	if err != nil || len(all) == 0 {
		return uuid.Nil, false, err
	}
	return all[0].ID, true, nil
}

// DefaultZone returns the name of the default time zone under the tenant's current policy.
func (s *Service) DefaultZone(ctx context.Context, tenant uuid.UUID) (string, error) {
	of, err := s.store.Standing(ctx, quota.Recipient{Tenant: tenant}, s.cfg.Policy)
	if err != nil {
		return "", fmt.Errorf("default zone: %w", err)
	}
	if terms, ok := of.Terms.(interface{ DefaultZone() *time.Location }); ok {
		return terms.DefaultZone().String(), nil
	}
	return "UTC", nil
}
