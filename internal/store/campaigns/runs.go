package campaigns

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
	"github.com/sendquota/sendquota/internal/webhook"
)

// Runs takes the steps of running campaigns, one chunk of recipients at a time.
type Runs struct {
	db        *pg.DB
	terms     *terms.Store
	pushes    *pushes.Store
	campaigns *Store
}

// NewRuns returns a Runs on a connection to Postgres.
func NewRuns(db *pg.DB, terms *terms.Store, pushes *pushes.Store, campaigns *Store) *Runs {
	return &Runs{db: db, terms: terms, pushes: pushes, campaigns: campaigns}
}

// Running is a campaign that a worker has leased.
type Running struct {
	broadcast.Campaign
	Parked bool         // waiting pushes may be parked
	Caps   push.OwnCaps // of its tenant
}

// OpenCampaigns lists the states of campaigns that need a worker.
const OpenCampaigns = `('starting', 'running', 'pausing', 'paused', 'canceling')`

// Condition is the SQL condition that selects the campaigns that a worker takes.
type Condition string

// Campaigns with steps to do, and campaigns that only wait for their pushes.
const (
	WithWork Condition = `status IN ('starting', 'pausing', 'canceling') OR status = 'running' AND parked`
	Waiting  Condition = `status = 'running' AND NOT parked OR status = 'paused'`
)

// TakeCampaign leases the selected campaign that has waited longest for its next step, among those that the worker or no
// worker has leased. It skips campaigns of the tenants in except. It returns nil if there is none. Two workers may do the
// same step.
func (s *Runs) TakeCampaign(ctx context.Context, worker uuid.UUID, which Condition, except []uuid.UUID) (*Running, error) {
	return pg.Leased[Running]{
		Table:   "campaigns",
		Open:    `status IN ` + OpenCampaigns + ` AND (` + string(which) + `)`,
		Columns: campaignColumns + `, p.parked, t.pending_cap, t.recipients_cap`,
		Scan: func(row pgx.CollectableRow) (r Running, err error) {
			r.Campaign, err = scanCampaign(row, &r.Parked, &r.Caps.PendingPushes, &r.Caps.RecipientsPerDay)
			return r, err
		},
	}.Take(ctx, s.db, worker, except)
}

// LeaveCampaign releases a worker's lease on a campaign, so that any worker can take it after a pause.
func (s *Runs) LeaveCampaign(ctx context.Context, worker, id uuid.UUID, after time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	_, err := s.db.Pool.Exec(ctx, `UPDATE campaigns SET worker = NULL, lease_until = clock_timestamp() + $3::interval WHERE id = $1 AND worker = $2`,
		id, worker, after)
	return pg.Classify(err)
}

// step locks a campaign, and if it is in one of these states, runs work in the same transaction and commits. Otherwise it
// does nothing.
func (s *Runs) step(ctx context.Context, id uuid.UUID, states []broadcast.Status, work func(ctx context.Context, tx pgx.Tx, p *Running) error) error {
	scan := func(row pgx.CollectableRow) (r Running, err error) {
		r.Campaign, err = scanCampaign(row, &r.Parked)
		return r, err
	}
	locked := func(ctx context.Context, _ *pgxpool.Conn, tx pgx.Tx, p *Running) error {
		return work(ctx, tx, p)
	}
	of := make([]string, len(states))
	for i, state := range states {
		of[i] = string(state)
	}
	return pg.LeasedStep(ctx, s.db, scan, locked, `SELECT `+campaignColumns+`, parked FROM campaigns p WHERE id = $1 AND status = ANY ($2::text[])`, id, of)
}

// EndCampaignStart changes a starting campaign to running if all its recipients are decided, and reports whether they are.
func (s *Runs) EndCampaignStart(ctx context.Context, id uuid.UUID) (ended bool, err error) {
	ended = true
	err = s.step(ctx, id, []broadcast.Status{broadcast.Starting}, func(ctx context.Context, tx pgx.Tx, p *Running) error {
		failpoint.Hit(failpoint.CampaignBooked)
		if ended = p.Progress.Pending <= 0; !ended {
			return nil
		}
		_, err := tx.Exec(ctx, `UPDATE campaigns SET status = 'running', updated_at = clock_timestamp() WHERE id = $1`, id)
		return err
	})
	return ended, err
}

// SettleCampaign writes a webhook event for each further tenth of a campaign's recipients that have ended, and ends the
// campaign when all have. It returns the campaign's status and the time until its next push is due, at most an hour.
func (s *Runs) SettleCampaign(ctx context.Context, id uuid.UUID) (status broadcast.Status, due time.Duration, err error) {
	all := []broadcast.Status{broadcast.Starting, broadcast.Running, broadcast.Pausing, broadcast.Paused, broadcast.Canceling}
	err = s.step(ctx, id, all, func(ctx context.Context, tx pgx.Tx, p *Running) error {
		status = p.Status
		var (
			told    int
			waits   *time.Duration
			booked  = p.Progress.Scheduled
			dropped = p.Progress.Canceled
		)
		b := &pgx.Batch{}
		b.Queue(`SELECT told FROM campaigns WHERE id = $1`, id).QueryRow(func(row pgx.Row) error { return row.Scan(&told) })
		b.Queue(`SELECT least(next_at, clock_timestamp() + interval '1 hour') - clock_timestamp() FROM (SELECT min(next_at) AS next_at FROM live WHERE campaign_id = $1) l
			WHERE next_at IS NOT NULL`, id).Query(func(rows pgx.Rows) error {
			all, err := pgx.CollectRows(rows, pgx.RowTo[time.Duration])
			if waits = nil; len(all) > 0 {
				waits, due = &all[0], all[0]
			}
			return err
		})
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if err := s.campaigns.fillEnds(ctx, tx, &p.Campaign); err != nil {
			return err
		}
		is := &p.Progress
		tenths := int(ended(is) * 10 / max(1, p.Size))
		over := waits == nil && is.Pending <= 0 && (p.Status == broadcast.Running || p.Status == broadcast.Canceling)
		if tenths <= told && !over {
			return nil
		}
		b = &pgx.Batch{}
		for tenth := told + 1; tenth <= tenths; tenth++ {
			queueCampaignEvent(b, &p.Campaign, webhook.EventCampaignProgress, 10*tenth)
		}
		b.Queue(`UPDATE campaigns SET told = $2, updated_at = clock_timestamp() WHERE id = $1`, id, max(told, tenths))
		if over {
			status = broadcast.Finished
			if p.Status == broadcast.Canceling {
				status = broadcast.Canceled
			}
			p.Status = status
			b.Queue(`UPDATE campaigns SET status = $2, ended_at = clock_timestamp(), worker = NULL, lease_until = NULL, sent = $3, failed = $4, expired = $5, withdrawn = $6, segments = $7 WHERE id = $1`,
				id, string(status), is.Sent, is.Failed, is.Expired, booked-is.Sent-is.Failed-is.Expired, p.Segments)
			is.Scheduled, is.Canceled = 0, dropped+booked-is.Sent-is.Failed-is.Expired
			if status == broadcast.Finished {
				queueCampaignEvent(b, &p.Campaign, webhook.EventCampaignFinished, 100)
			}
		}
		err := tx.SendBatch(ctx, b).Close()
		failpoint.Hit(failpoint.CampaignSettled)
		return err
	})
	return status, due, err
}
