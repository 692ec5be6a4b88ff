package httpapi

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/push"
)

// The groups of these operations in the documentation.
const (
	tagRecords  = "Records"
	tagChannels = "Channels"
)

// sends serves delivery attempts.
type sends struct {
	svc interface {
		Sends(ctx context.Context, tenant uuid.UUID, f push.SendFilter, after push.SendPosition, limit int) (push.SendPage, error)
	}
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// refusals serves refused pushes.
type refusals struct {
	svc interface {
		Refusals(ctx context.Context, tenant uuid.UUID, f push.RefusalFilter, after push.RefusalPosition, limit int) (push.RefusalPage, error)
	}
}

// stats serves counts of pushes.
type stats struct {
	svc interface {
		Stats(ctx context.Context, tenant uuid.UUID, q push.StatsQuery) (push.Stats, error)
		Ahead(ctx context.Context, tenant uuid.UUID, q push.AheadQuery) ([]push.AheadCount, error)
	}
}

// auditLog serves the audit log.
type auditLog struct {
	svc interface {
		AuditLog(ctx context.Context, tenant uuid.UUID, f push.LogFilter, before push.LogPosition, limit int) (push.LogPage, error)
	}
	exports *bulkhead.Bulkhead[uuid.UUID]
}

// records reads what has happened to a tenant's pushes.
type records interface {
	Sends(ctx context.Context, tenant uuid.UUID, f push.SendFilter, after push.SendPosition, limit int) (push.SendPage, error)
	Refusals(ctx context.Context, tenant uuid.UUID, f push.RefusalFilter, after push.RefusalPosition, limit int) (push.RefusalPage, error)
	Stats(ctx context.Context, tenant uuid.UUID, q push.StatsQuery) (push.Stats, error)
	Ahead(ctx context.Context, tenant uuid.UUID, q push.AheadQuery) ([]push.AheadCount, error)
	AuditLog(ctx context.Context, tenant uuid.UUID, f push.LogFilter, before push.LogPosition, limit int) (push.LogPage, error)
}

// failures serves failed and expired pushes by reason.
type failures struct{ store failureStore }

// audits serves the audits of the workers.
type audits struct{ Audits }

// channels serves the states of channels.
type channels struct {
	Channels
	counts *moments[channelsView]
}

// statuses serves the current status of a tenant's pushes.
type statuses struct {
	store    flowStore
	health   *health.Checker
	flows    *moments[push.Flow]
	channels *moments[channelsView]
}

// RecordSources has the sources of the records of tenants.
type RecordSources struct {
	Records  records
	Flows    flowStore
	Failures failureStore
	Audits   Audits
	Channels Channels
	Health   *health.Checker
}

// recordOperations returns the operations on records and channels.
func recordOperations(s *spec, from RecordSources, exports *bulkhead.Bulkhead[uuid.UUID], now func() time.Time) []operation {
	ch := &channels{Channels: from.Channels}
	ch.counts = newMoments(now, ch.count)
	st := &statuses{store: from.Flows, health: from.Health, channels: ch.counts}
	st.flows = newMoments(now, st.count)
	return slices.Concat(
		(&sends{from.Records, exports}).routes(s), (&refusals{from.Records}).routes(s), (&stats{from.Records}).routes(s),
		st.routes(s), ch.routes(s), (&audits{from.Audits}).routes(s), (&auditLog{from.Records, exports}).routes(s), (&failures{from.Failures}).routes(s),
	)
}
