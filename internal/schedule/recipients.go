package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// Recipients describes, imports and erases the recipients of tenants.
type Recipients struct {
	store recipientStore
	cache *quota.Cache
	caps  *capCounter
	wakes *horizonWaker
	cfg   Config
	now   func() time.Time
}

// recipientStore stores the descriptions of recipients.
type recipientStore interface {
	importStore
	Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error)
	Description(ctx context.Context, r quota.Recipient) (booking.Description, error)
	Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) (all []booking.Description, more bool, err error)
	Erase(ctx context.Context, r quota.Recipient) (booking.Erased, error)
}

// importStore records imports in the audit log.
type importStore interface {
	BeginImport(ctx context.Context, tenant uuid.UUID, of auditlog.Action) (auditlog.Position, error)
	EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error
}

// Describe replaces the tenant's descriptions of recipients, each of them named once, and cancels their waiting pushes
// that match a new opt-out. The descriptions must be valid: see [Recipients.CheckDescription].
func (rs *Recipients) Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error) {
	described, err := rs.store.Describe(ctx, tenant, all)
	for i := range all { // also after an error: they may have been stored
		rs.cache.Forget(quota.Recipient{Tenant: tenant, ID: all[i].Recipient})
	}
	if err != nil {
		return nil, fmt.Errorf("describe: %w", err)
	}
	for i := range described {
		if described[i].Rechecked > 0 {
			rs.wakes.Wake(push.RecipientKey(tenant, all[i].Recipient), rs.now(), 0)
		}
		for _, day := range described[i].Days {
			rs.caps.forget(tenant, day)
		}
	}
	return described, nil
}

// BeginImport adds an entry for an import of recipients to the audit log, before the first recipient is described.
func (rs *Recipients) BeginImport(ctx context.Context, tenant uuid.UUID) (auditlog.Position, error) {
	return rs.store.BeginImport(ctx, tenant, auditlog.RecipientImport)
}

// EndImport completes that entry with the numbers of recipients created and updated, and of pushes canceled.
func (rs *Recipients) EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error {
	return rs.store.EndImport(ctx, tenant, at, created, updated, canceled)
}

// Description returns a tenant's description of a recipient, or [push.ErrNotFound].
func (rs *Recipients) Description(ctx context.Context, r quota.Recipient) (booking.Description, error) {
	return rs.store.Description(ctx, r)
}

// Descriptions returns up to limit of a tenant's descriptions that match a filter, after a recipient, in the order of
// their ids, and whether there are more.
func (rs *Recipients) Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) ([]booking.Description, bool, error) {
	return rs.store.Descriptions(ctx, tenant, f, after, limit)
}

// Erase erases a recipient: see Erase of the package store. A failed call may have erased a part, and can be repeated.
func (rs *Recipients) Erase(ctx context.Context, r quota.Recipient) (booking.Erased, error) {
	erased, err := rs.store.Erase(ctx, r)
	_ = rs.cache.Erase(ctx, r) // what remains in the cache names no recipient, and expires
	for _, day := range erased.Days {
		rs.caps.forget(r.Tenant, day)
	}
	if err != nil {
		return erased, fmt.Errorf("erase: %w", err)
	}
	return erased, nil
}

// CheckDescription returns all faults of a tenant's description whose form was already checked: unknown zones and channels, and
// addresses that the channel's provider would certainly refuse.
func (rs *Recipients) CheckDescription(tenant uuid.UUID, d booking.Description) invalid.FieldErrors {
	var bad invalid.FieldErrors
	channels := rs.cfg.channelsOf(tenant)
	if d.TimeZone != "" {
		if _, err := zone.Load(d.TimeZone); err != nil {
			bad.Add("time_zone", d.TimeZone, "%s", err)
		}
	}
	for _, channel := range slices.Sorted(maps.Keys(d.Addresses)) {
		at, address := "addresses."+channel, d.Addresses[channel]
		switch {
		case !slices.Contains(channels, channel):
			bad.Add(at, address, "%s", invalid.UnknownName("channel", channel, channels))
		default:
			faults, _ := withoutAddress(rs.cfg.checkFor(tenant, channel, address, nil))
			for _, f := range faults {
				bad.Add(at, address, "%s", f.Message)
			}
		}
	}
	for i, channel := range d.OptOuts.Channels {
		if !slices.Contains(channels, channel) {
			bad.Add(fmt.Sprintf("opt_outs.channels[%d]", i), channel, "%s", invalid.UnknownName("channel", channel, channels))
		}
	}
	return bad
}
