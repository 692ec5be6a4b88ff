// Package records has the operations of the REST API on records of the past and on the current state: attempts, refusals, counts,
// failures, audits, the audit log, the status and the channels.
package records

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/stats"
)

// The groups of these operations in the documentation.
const (
	TagRecords  = "Records"
	TagChannels = "Channels"
)

// sends serves delivery attempts.
type sends struct {
	svc interface {
		Sends(ctx context.Context, tenant uuid.UUID, f record.SendFilter, after record.SendPosition, limit int) (record.SendPage, error)
	}
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// refusals serves refused pushes.
type refusals struct {
	svc interface {
		Refusals(ctx context.Context, tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, limit int) (record.RefusalPage, error)
	}
}

// statistics serves counts of pushes.
type statistics struct {
	svc interface {
		Stats(ctx context.Context, tenant uuid.UUID, q stats.Query) (stats.Report, error)
		Ahead(ctx context.Context, tenant uuid.UUID, q stats.AheadQuery) ([]stats.AheadCount, error)
	}
}

// auditLog serves the audit log.
type auditLog struct {
	svc interface {
		AuditLog(ctx context.Context, tenant uuid.UUID, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error)
	}
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// records reads what has happened to a tenant's pushes.
type records interface {
	Sends(ctx context.Context, tenant uuid.UUID, f record.SendFilter, after record.SendPosition, limit int) (record.SendPage, error)
	Refusals(ctx context.Context, tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, limit int) (record.RefusalPage, error)
	Stats(ctx context.Context, tenant uuid.UUID, q stats.Query) (stats.Report, error)
	Ahead(ctx context.Context, tenant uuid.UUID, q stats.AheadQuery) ([]stats.AheadCount, error)
	AuditLog(ctx context.Context, tenant uuid.UUID, f auditlog.Filter, before auditlog.Position, limit int) (auditlog.Page, error)
}

// failures serves failed and expired pushes by reason.
type failures struct{ store FailureStore }

// audits serves the audits of the workers.
type audits struct{ Audits }

// channels serves the states of channels.
type channels struct {
	Channels
	now      func() time.Time
	counts   *rest.Moments[channelCounts]
	backlogs *rest.Moments[map[string][]channelhealth.Backlog] // of all tenants
}

// statuses serves the current status of a tenant's pushes.
type statuses struct {
	store    FlowStore
	health   *health.Checker
	flows    *rest.Moments[stats.Flow]
	channels *channels
}

// Sources has the sources of the records of tenants.
type Sources struct {
	Records  records
	Flows    FlowStore
	Failures FailureStore
	Audits   Audits
	Channels Channels
	Health   *health.Checker
}

// Operations returns the operations on records and channels.
func Operations(s *rest.Spec, from Sources, exports *bulkhead.Bulkhead[uuid.UUID], now func() time.Time) []rest.Operation {
	ch := &channels{Channels: from.Channels, now: now}
	if ch.Own.Types == nil {
		ch.Own.Types = []string{}
	}
	ch.counts, ch.backlogs = rest.NewMoments(now, ch.count), rest.NewMoments(now, ch.backlog)
	st := &statuses{store: from.Flows, health: from.Health, channels: ch}
	st.flows = rest.NewMoments(now, st.count)
	return slices.Concat(
		(&sends{from.Records, exports}).routes(s), (&refusals{from.Records}).routes(s), (&statistics{from.Records}).routes(s),
		st.routes(s), ch.routes(s), (&audits{from.Audits}).routes(s), (&auditLog{from.Records, exports}).routes(s), (&failures{from.Failures}).routes(s),
	)
}
