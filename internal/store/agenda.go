package store

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/webhooks"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// Work names the work of one of a worker's loops.
type Work string

// The kinds of work that [Store.Agenda] reports.
const (
	RunCampaigns   Work = "campaigns"    // campaigns with a step to do
	RunBulkChanges Work = "bulk changes" // bulk changes with a step to do
	RunOperations  Work = "operations"   // policy operations with a step to do
	RunSchedules   Work = "schedules"    // schedules due within a second, or runs without an outcome
	SendEvents     Work = "events"       // events due for webhooks
	ResumePaused   Work = "pauses"       // pauses to end, and pushes that a pause has parked to continue with or to end
	FoldStats      Work = "stats"        // increments that are not added to the stats yet
	PushesDue      Work = "due"          // pushes due
	AttemptsLost   Work = "lost"         // attempts with expired leases
)

// agendaSQL lists the kinds of work that exist. For each kind it searches the first row that the loop would find.
// Schedules count from a second before they are due, because their loop waits for the exact moment. Pushes count when
// they are due; their loop knows when they expire.
const agendaSQL = pg.ChannelsSQL + `, ` + webhooks.OpenWebhooksSQL + `, lanes (first, last) AS (SELECT * FROM unnest($1::bigint[], $2::bigint[]))
	SELECT name FROM (VALUES
		('` + string(RunCampaigns) + `', EXISTS (SELECT FROM campaigns WHERE status IN ` + campaigns.OpenCampaigns + ` AND lease_until IS NULL)
			OR EXISTS (SELECT FROM campaigns WHERE status IN ` + campaigns.OpenCampaigns + ` AND lease_until < statement_timestamp())),
		('` + string(RunBulkChanges) + `', EXISTS (SELECT FROM bulk_changes WHERE ended_at IS NULL AND (lease_until < statement_timestamp()) IS NOT FALSE
			AND (resume_at <= statement_timestamp()) IS NOT FALSE)),
		('` + string(RunOperations) + `', EXISTS (SELECT FROM policy_operations WHERE status = 'running' AND (lease_until < statement_timestamp()) IS NOT FALSE)),
		('` + string(RunSchedules) + `', EXISTS (SELECT FROM schedules WHERE next_at <= statement_timestamp() + interval '1 second')
			OR EXISTS (SELECT FROM schedule_runs WHERE outcome IS NULL)),
		('` + string(SendEvents) + `', EXISTS (SELECT FROM open o JOIN webhooks w ON w.id = o.webhook_id
			WHERE o.next_at <= statement_timestamp() AND coalesce(w.disabled_at, w.deleted_at) IS NULL)),
		('` + string(ResumePaused) + `', EXISTS (SELECT FROM pauses WHERE ended_at IS NOT NULL)
			OR EXISTS (SELECT FROM pauses WHERE ended_at IS NULL AND until <= statement_timestamp())
			OR EXISTS (SELECT FROM live WHERE pause_id IS NOT NULL AND expires_at <= statement_timestamp())),
		('` + string(FoldStats) + `', EXISTS (SELECT FROM stat_deltas)),
		('` + string(PushesDue) + `', EXISTS (SELECT FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN lanes l CROSS JOIN LATERAL (
			SELECT FROM live WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
				AND (recipient_key & 255) BETWEEN l.first AND l.last ORDER BY next_at LIMIT 1) due)),
		('` + string(AttemptsLost) + `', EXISTS (SELECT FROM channels c CROSS JOIN lanes l CROSS JOIN LATERAL (
			SELECT FROM live WHERE channel = c.name AND phase = ` + pg.UnderWay + ` AND next_at < statement_timestamp()
				AND (recipient_key & 255) BETWEEN l.first AND l.last ORDER BY next_at LIMIT 1) lost))
	) AS work (name, waits) WHERE waits`

// Agenda lists the kinds of work that wait for any worker, or for the owner of lanes. One statement checks all kinds,
// so that idle loops need no query of their own.
func (s *Store) Agenda(ctx context.Context, lanes []push.Lane) ([]Work, error) {
	firsts, lasts := pg.RangesOf(lanes)
	return pg.Collect(ctx, s.db, pgx.RowTo[Work], pg.InAllShards(agendaSQL), firsts, lasts)
}
