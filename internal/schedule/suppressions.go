package schedule

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Suppressions changes and lists the addresses to which a tenant's channels send nothing.
type Suppressions struct {
	store suppressionStore
	caps  *capCounter
	cfg   Config
}

// suppressionStore keeps suppressions.
type suppressionStore interface {
	PutSuppressions(ctx context.Context, tenant uuid.UUID, entries []suppression.Entry, record bool) ([]suppression.Stored, booking.Canceled, error)
	DeleteSuppression(ctx context.Context, tenant uuid.UUID, channel, address string, reason suppression.Reason) (int64, error)
	Suppressions(ctx context.Context, tenant uuid.UUID, f suppression.Filter, after suppression.Position, limit int) (suppression.Page, error)
	importStore
}

// suppressionReader finds the suppression of an address.
type suppressionReader interface {
	SuppressionOf(ctx context.Context, tenant uuid.UUID, channel, address string) (*suppression.Entry, error)
}

// Suppress stores entries, each address, channel and reason once, and cancels the waiting pushes to their addresses. The entries must be
// valid: see [Suppressions.CheckSuppression]. With record, the audit log gets an entry for the first one.
func (s *Suppressions) Suppress(ctx context.Context, tenant uuid.UUID, entries []suppression.Entry, record bool) ([]suppression.Stored, booking.Canceled, error) {
	stored, canceled, err := s.store.PutSuppressions(ctx, tenant, entries, record)
	for _, day := range canceled.Days {
		s.caps.forget(tenant, day)
	}
	if err != nil {
		return nil, canceled, fmt.Errorf("suppress: %w", err)
	}
	return stored, canceled, nil
}

// Unsuppress removes the entry of an address on a channel with a reason, or with any reason if that is empty. It returns
// [push.ErrNotFound] if there is none.
func (s *Suppressions) Unsuppress(ctx context.Context, tenant uuid.UUID, channel, address string, reason suppression.Reason) error {
	_, err := s.store.DeleteSuppression(ctx, tenant, channel, suppression.Normal(address), reason)
	return err
}

// SuppressedAddresses returns up to limit of a tenant's entries that match a filter, after a position.
func (s *Suppressions) SuppressedAddresses(ctx context.Context, tenant uuid.UUID, f suppression.Filter, after suppression.Position, limit int) (suppression.Page, error) {
	f.Address = suppression.Normal(f.Address)
	return s.store.Suppressions(ctx, tenant, f, after, limit)
}

// CheckSuppression returns all faults of an entry whose form was already checked: a channel that the tenant does not have, and an address
// that the channel's provider would certainly refuse. It sets the address to the form in which addresses are compared.
func (s *Suppressions) CheckSuppression(tenant uuid.UUID, e *suppression.Entry) invalid.FieldErrors {
	var bad invalid.FieldErrors
	given := e.Address
	e.Address = suppression.Normal(given)
	if channels := s.cfg.channelsOf(tenant); !slices.Contains(channels, e.Channel) {
		bad.Add("channel", e.Channel, "%s", invalid.UnknownName("channel", e.Channel, channels))
		return bad
	}
	faults, _ := withoutAddress(s.cfg.checkFor(tenant, e.Channel, e.Address, nil))
	for _, f := range faults {
		bad.Add("address", given, "%s", f.Message)
	}
	return bad
}

// BeginSuppressionImport adds an entry for an import of suppressions to the audit log, before the first one is stored.
func (s *Suppressions) BeginSuppressionImport(ctx context.Context, tenant uuid.UUID) (auditlog.Position, error) {
	return s.store.BeginImport(ctx, tenant, auditlog.SuppressionImport)
}
