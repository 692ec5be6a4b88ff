package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// recipientStore stores the descriptions of recipients.
type recipientStore interface {
	Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error)
	Description(ctx context.Context, r quota.Recipient) (booking.Description, error)
	Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) (all []booking.Description, more bool, err error)
	Erase(ctx context.Context, r quota.Recipient) (booking.Erased, error)
	BeginImport(ctx context.Context, tenant uuid.UUID) (push.LogPosition, error)
	EndImport(ctx context.Context, tenant uuid.UUID, at push.LogPosition, created, updated, canceled int) error
	History(ctx context.Context, r quota.Recipient, from, until time.Time, most int) ([]booking.Past, []booking.Attempted, error)
}

// Describe replaces the tenant's descriptions of recipients, each of them named once, and cancels their waiting pushes
// that match a new opt-out. The descriptions must be valid: see [Service.CheckDescription].
func (s *Service) Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error) {
	described, err := s.store.Describe(ctx, tenant, all)
	for i := range all { // also after an error: they may have been stored
		s.cache.Forget(quota.Recipient{Tenant: tenant, ID: all[i].Recipient})
	}
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	for i := range described {
		if described[i].Rechecked > 0 {
			s.Wake(push.RecipientKey(tenant, all[i].Recipient), s.now(), 0)
		}
		for _, day := range described[i].Days {
			s.caps.forget(tenant, day)
		}
	}
	return described, nil
}

// BeginImport adds an entry for an import of recipients to the audit log, before the first recipient is described.
func (s *Service) BeginImport(ctx context.Context, tenant uuid.UUID) (push.LogPosition, error) {
	return s.store.BeginImport(ctx, tenant)
}

// EndImport completes that entry with the numbers of recipients created and updated, and of pushes canceled.
func (s *Service) EndImport(ctx context.Context, tenant uuid.UUID, at push.LogPosition, created, updated, canceled int) error {
	return s.store.EndImport(ctx, tenant, at, created, updated, canceled)
}

// Description returns a tenant's description of a recipient, or [push.ErrNotFound].
func (s *Service) Description(ctx context.Context, r quota.Recipient) (booking.Description, error) {
	return s.store.Description(ctx, r)
}

// Descriptions returns up to limit of a tenant's descriptions that match a filter, after a recipient, in the order of
// their ids, and whether there are more.
func (s *Service) Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) ([]booking.Description, bool, error) {
	return s.store.Descriptions(ctx, tenant, f, after, limit)
}

// Erase erases a recipient: see Erase of the package store. A failed call may have erased a part, and can be repeated.
func (s *Service) Erase(ctx context.Context, r quota.Recipient) (booking.Erased, error) {
	erased, err := s.store.Erase(ctx, r)
	_ = s.cache.Erase(ctx, r) // what remains in the cache names no recipient, and expires
	for _, day := range erased.Days {
		s.caps.forget(r.Tenant, day)
	}
	if err != nil {
		return erased, fmt.Errorf("erase: %w", err)
	}
	return erased, nil
}

// CheckDescription returns all faults of a description whose form was already checked: unknown zones and channels, and
// addresses that the channel's provider would certainly refuse.
func (s *Service) CheckDescription(d booking.Description) invalid.FieldErrors {
	var bad invalid.FieldErrors
	if d.TimeZone != "" {
		if _, err := zone.Load(d.TimeZone); err != nil {
			bad.Add("time_zone", d.TimeZone, "%s", err)
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(d.Addresses)) {
		at, address := "addresses."+channel, d.Addresses[channel]
		switch {
		case !slices.Contains(s.cfg.Channels, channel):
			bad.Add(at, address, "%s", s.unknownChannel())
		case s.cfg.Check != nil:
			faults, _ := withoutAddress(s.cfg.Check(channel, address, nil))
			for _, f := range faults {
				bad.Add(at, address, "%s", f.Message)
			}
		}
	}
	for i, channel := range d.OptOuts.Channels {
		if !slices.Contains(s.cfg.Channels, channel) {
			bad.Add(fmt.Sprintf("opt_outs.channels[%d]", i), channel, "%s", s.unknownChannel())
		}
	}
	return bad
}

func (s *Service) unknownChannel() string {
	return "unknown channel; the channels are: " + strings.Join(s.cfg.Channels, ", ")
}
