package schedule

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/stats"
)

// Records reads what has happened to the pushes and the recipients of tenants.
type Records struct {
	store   recordReader
	history historyReader
	cache   *quota.Cache
	now     func() time.Time
}

// recordReader reads records of the past.
type recordReader interface {
	Sends(ctx context.Context, tenant uuid.UUID, f record.SendFilter, after record.SendPosition, limit int) (record.SendPage, error)
	CampaignRefusals(ctx context.Context, tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, limit int) (record.RefusalPage, error)
	Stats(ctx context.Context, tenant uuid.UUID, q stats.Query) (stats.Report, error)
	AuditLog(ctx context.Context, tenant uuid.UUID, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error)
	AheadCounts(ctx context.Context, tenant uuid.UUID, q stats.AheadQuery) ([]stats.AheadCount, error)
}

// historyReader reads the history of a recipient.
type historyReader interface {
	History(ctx context.Context, r quota.Recipient, from, until time.Time, most int) ([]booking.Past, []booking.Attempted, error)
}

// Sends returns up to limit of a tenant's finished attempts after a position, in the order of their start.
func (rs *Records) Sends(ctx context.Context, tenant uuid.UUID, f record.SendFilter, after record.SendPosition, limit int) (record.SendPage, error) {
	return rs.store.Sends(ctx, tenant, f, after, limit)
}

// AuditLog returns up to limit of a tenant's entries of the audit log before a position, the newest first; the zero
// position starts at the newest.
func (rs *Records) AuditLog(ctx context.Context, tenant uuid.UUID, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error) {
	return rs.store.AuditLog(ctx, tenant, f, before, limit)
}

// Stats returns a tenant's statistics.
func (rs *Records) Stats(ctx context.Context, tenant uuid.UUID, q stats.Query) (stats.Report, error) {
	return rs.store.Stats(ctx, tenant, q)
}

// Ahead counts a tenant's waiting pushes by the hour or day of their send time.
func (rs *Records) Ahead(ctx context.Context, tenant uuid.UUID, q stats.AheadQuery) ([]stats.AheadCount, error) {
	return rs.store.AheadCounts(ctx, tenant, q)
}

// Refusals returns up to limit of a tenant's refusals after a position, the oldest first: refusals of campaigns and, if
// the filter names a recipient, also the recent refusals of single pushes.
func (rs *Records) Refusals(ctx context.Context, tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, limit int) (record.RefusalPage, error) {
	page, err := rs.store.CampaignRefusals(ctx, tenant, f, after, limit)
	if err != nil || f.Recipient == "" || f.Campaign != uuid.Nil {
		return page, err
	}
	for _, one := range rs.kept(ctx, quota.Recipient{Tenant: tenant, ID: f.Recipient}) {
		r := one.record(f.Recipient)
		switch at := refusalPosition(&r); {
		case r.At.Before(f.From), !f.Until.IsZero() && !r.At.Before(f.Until), f.Rule != "" && !slices.Contains(r.Rules, f.Rule):
		case compareRefusals(at, after) <= 0, page.Next != nil && compareRefusals(at, *page.Next) > 0:
		default:
			page.Refusals = append(page.Refusals, r)
		}
	}
	slices.SortFunc(page.Refusals, func(a, b record.Refusal) int { return compareRefusals(refusalPosition(&a), refusalPosition(&b)) })
	if len(page.Refusals) > limit {
		page.Refusals = page.Refusals[:limit]
		page.Next = new(refusalPosition(&page.Refusals[limit-1]))
	}
	return page, nil
}

// record returns the refusal as an entry of a list.
func (k *keptRefusal) record(recipient string) record.Refusal {
	r := record.Refusal{
		At: k.At.UTC().Truncate(time.Microsecond), Recipient: recipient, Channel: k.Channel, Category: k.Category, RequestedSendAt: k.SendAt,
		Reason: cmp.Or(k.Name, k.Reason), Rules: k.Rules,
	}
	if len(k.Conflicts) > 0 {
		r.Conflicts, _ = json.Marshal(k.Conflicts) // the conflicts came from JSON
	}
	return r
}

func refusalPosition(r *record.Refusal) record.RefusalPosition {
	return record.RefusalPosition{At: r.At, Campaign: r.Campaign, Line: r.Line}
}

// compareRefusals orders refusals as Postgres does.
func compareRefusals(a, b record.RefusalPosition) int {
	return cmp.Or(a.At.Compare(b.At), bytes.Compare(a.Campaign[:], b.Campaign[:]), cmp.Compare(a.Line, b.Line))
}
