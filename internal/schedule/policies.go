package schedule

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/policy"
)

// Policies reads and changes the policies of tenants.
type Policies struct {
	store   policyStore
	effects effectStore
	used    categoryStore
	cfg     PoliciesConfig
}

// PoliciesConfig configures Policies.
type PoliciesConfig struct {
	File     policy.Document // the policy of tenants without a policy of their own
	Terms    booking.Terms   // the compiled File
	Channels []string
	Own      OwnChannels // see [Config.Own]
}

// channelsOf lists the channels of a tenant.
func (c PoliciesConfig) channelsOf(tenant uuid.UUID) []string {
	return (&Config{Channels: c.Channels, Own: c.Own}).channelsOf(tenant)
}

// categoryStore knows the categories of pushes.
type categoryStore interface {
	UsedCategories(ctx context.Context, tenant uuid.UUID) ([]string, error)
}

// policyStore stores the versions of policies, and the operations that apply changes to existing bookings.
type policyStore interface {
	Policy(ctx context.Context, tenant uuid.UUID) (policy.Version, error)
	PolicyVersions(ctx context.Context, tenant uuid.UUID, before int64, limit int) ([]policy.Version, error)
	ChangePolicy(ctx context.Context, tenant uuid.UUID, change policy.Change) (policy.Version, *policy.Operation, error)
	PolicyOperation(ctx context.Context, tenant, id uuid.UUID) (policy.Operation, error)
}

// effectStore computes the effects of a policy that is not in force.
type effectStore interface {
	Forecast(ctx context.Context, tenant uuid.UUID, terms booking.Terms) (policy.Forecast, error)
	Shadows(ctx context.Context, tenant uuid.UUID, from, until time.Time) ([]policy.ShadowCount, error)
}

// NewPolicies returns the policies in a store.
func NewPolicies(st interface {
	policyStore
	effectStore
	categoryStore
}, cfg PoliciesConfig,
) *Policies {
	return &Policies{store: st, effects: st, used: st, cfg: cfg}
}

// File returns the policy of tenants without a policy of their own.
func (p *Policies) File() policy.Document { return p.cfg.File }

// InForce returns the policy that decides new submits. Its document is nil if the operator's file is in force.
func (p *Policies) InForce(ctx context.Context, tenant uuid.UUID) (policy.Version, error) {
	return p.store.Policy(ctx, tenant)
}

// Categories returns the categories that the policy in force names, and those of the tenant's pushes.
func (p *Policies) Categories(ctx context.Context, tenant uuid.UUID) ([]string, error) {
	v, err := p.store.Policy(ctx, tenant)
	if err != nil {
		return nil, err
	}
	document := p.cfg.File
	if v.Document != nil {
		document = *v.Document
	}
	used, err := p.used.UsedCategories(ctx, tenant)
	return append(used, document.CategoryNames()...), err
}

// Versions returns up to limit of a tenant's policies before a version, the newest first; 0 starts at the newest.
func (p *Policies) Versions(ctx context.Context, tenant uuid.UUID, before int64, limit int) ([]policy.Version, error) {
	return p.store.PolicyVersions(ctx, tenant, before, limit)
}

// Check returns all faults of a tenant's document.
func (p *Policies) Check(tenant uuid.UUID, d policy.Document) invalid.FieldErrors {
	_, err := d.Compile(p.cfg.channelsOf(tenant))
	wrong, _ := err.(invalid.FieldErrors)
	return wrong
}

// Change puts another policy in force, for all submits after its return. It returns the policy and, if the change also
// applies to existing bookings, the operation that does so. Its errors are [invalid.FieldErrors], [*policy.StaleError]
// and [push.ErrUnavailable].
func (p *Policies) Change(ctx context.Context, tenant uuid.UUID, change policy.Change) (policy.Version, *policy.Operation, error) {
	if change.Document != nil {
		if wrong := p.Check(tenant, *change.Document); len(wrong) > 0 {
			return policy.Version{}, nil, wrong
		}
	}
	return p.store.ChangePolicy(ctx, tenant, change)
}

// Operation returns an operation that applies a change to existing bookings, or [push.ErrNotFound].
func (p *Policies) Operation(ctx context.Context, tenant, id uuid.UUID) (policy.Operation, error) {
	return p.store.PolicyOperation(ctx, tenant, id)
}

// Forecast returns the effect that a change would have on existing bookings. IT CHANGES NOTHING. Its errors are the
// errors of Change.
func (p *Policies) Forecast(ctx context.Context, tenant uuid.UUID, change policy.Change) (policy.Forecast, error) {
	terms := p.cfg.Terms
	if change.Document != nil {
		own, err := change.Document.Compile(p.cfg.channelsOf(tenant))
		if err != nil {
			return policy.Forecast{}, err
		}
		terms = own
	}
	if change.If != nil {
		v, err := p.store.Policy(ctx, tenant)
		if err != nil {
			return policy.Forecast{}, err
		}
		if !change.Holds(v.Number) {
			return policy.Forecast{}, &policy.StaleError{InForce: v.Number}
		}
	}
	return p.effects.Forecast(ctx, tenant, booking.OrNone(terms))
}

// Shadow counts the pushes submitted in [from, until), by the minute, that shadow rules would have refused.
func (p *Policies) Shadow(ctx context.Context, tenant uuid.UUID, from, until time.Time) ([]policy.ShadowCount, error) {
	return p.effects.Shadows(ctx, tenant, from, until)
}
