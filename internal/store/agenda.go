package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/webhooks"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// Work is what one of a worker's loops does.
type Work string

// The work that [Store.Agenda] knows.
const (
	RunCampaigns   Work = "campaigns"
	RunBulkChanges Work = "bulk changes"
	RunOperations  Work = "operations"
	RunSchedules   Work = "schedules"
	SendEvents     Work = "events"
	FoldStats      Work = "stats"
	PushesDue      Work = "due"
	AttemptsLost   Work = "lost"
)

// agendaSQL lists the work that there is. Of each it asks for the first row that its loop would find: of schedules, those that
// are due within a second, for their loop waits for the moment itself; of pushes that are due any, for when they expire is the
// loop's to know.
const agendaSQL = pg.ChannelsSQL + `, ` + webhooks.OpenWebhooksSQL + `, lanes (first, last) AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]))
	SELECT name FROM (VALUES
		('` + string(RunCampaigns) + `', EXISTS (SELECT FROM campaigns WHERE status IN ` + campaigns.OpenCampaigns + ` AND lease_until IS NULL)
			OR EXISTS (SELECT FROM campaigns WHERE status IN ` + campaigns.OpenCampaigns + ` AND lease_until < statement_timestamp())),
		('` + string(RunBulkChanges) + `', EXISTS (SELECT FROM bulk_changes WHERE ended_at IS NULL AND (lease_until < statement_timestamp()) IS NOT FALSE)),
		('` + string(RunOperations) + `', EXISTS (SELECT FROM policy_operations WHERE status = 'running' AND (lease_until < statement_timestamp()) IS NOT FALSE)),
		('` + string(RunSchedules) + `', EXISTS (SELECT FROM schedules WHERE next_at <= statement_timestamp() + interval '1 second')
			OR EXISTS (SELECT FROM schedule_runs WHERE outcome IS NULL)),
		('` + string(SendEvents) + `', EXISTS (SELECT FROM open o JOIN webhooks w ON w.id = o.webhook_id
			WHERE o.next_at <= statement_timestamp() AND coalesce(w.disabled_at, w.deleted_at) IS NULL)),
		('` + string(FoldStats) + `', EXISTS (SELECT FROM stat_deltas)),
		('` + string(PushesDue) + `', EXISTS (SELECT FROM channels c CROSS JOIN ` + pg.Kinds + ` CROSS JOIN lanes l CROSS JOIN LATERAL (
			SELECT FROM live WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
				AND (recipient_key & 255) BETWEEN l.first AND l.last ORDER BY next_at LIMIT 1) due)),
		('` + string(AttemptsLost) + `', EXISTS (SELECT FROM channels c CROSS JOIN lanes l CROSS JOIN LATERAL (
			SELECT FROM live WHERE channel = c.name AND phase = 2 AND next_at < statement_timestamp()
				AND (recipient_key & 255) BETWEEN l.first AND l.last ORDER BY next_at LIMIT 1) lost))
	) AS work (name, waits) WHERE waits`

// Agenda lists the work that waits for a worker: for any, and for the owner of some lanes. It asks for all of it at once, so that
// its loops do not ask while there is none.
func (s *Store) Agenda(ctx context.Context, lanes []push.Lane) ([]Work, error) {
	firsts, lasts := pg.RangesOf(lanes)
	return pg.Collect(ctx, s.db, pgx.RowTo[Work], pg.InAllShards(agendaSQL), firsts, lasts)
}
