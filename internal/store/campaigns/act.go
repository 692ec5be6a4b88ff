package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/webhook"
)

// Checked is the outcome of a check of a draft as it was read, without a lock.
type Checked struct {
	At      time.Time // updated_at of the draft; zero: nothing was checked
	Invalid error     // nil: it is valid
}

// ErrChanged reports that a draft was changed since it was checked. Nothing was done; read and check it again.
var ErrChanged = errors.New("the draft was changed since it was checked")

// of returns an error if a draft is invalid, or no longer as it was when it was checked.
func (c Checked) of(p *broadcast.Campaign) error {
	if !c.At.IsZero() && !c.At.Equal(p.UpdatedAt) {
		return ErrChanged
	}
	return c.Invalid
}

// ActOnCampaign changes a campaign's state as the action says. The action is in force when the call returns: no chunk of
// a held campaign is booked and none of its pushes is claimed. Workers do the work that the new state needs. If the state
// would change, the errors are the fault of the checked draft, [ErrChanged] and [*push.StaleError]. Other errors are
// [push.ErrNotFound] and [*broadcast.StateError].
func (s *Store) ActOnCampaign(ctx context.Context, tenant, id uuid.UUID, action broadcast.Action, unchanged push.Unchanged, checked Checked) (p broadcast.Campaign, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			rows, _ := tx.Query(ctx, `SELECT `+campaignColumns+` FROM campaigns p WHERE id = $1 AND tenant_id = $2 FOR NO KEY UPDATE`, id, tenant)
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			if err := s.fillEnds(ctx, tx, &p); err != nil {
				return err
			}
			to, err := action.On(p)
			if err != nil || to == p.Status {
				return err
			}
			if err := unchanged.Check(p.UpdatedAt); err != nil {
				return err
			}
			if err := checked.of(&p); err != nil {
				return err
			}
			progress, begun, old := p.Progress, p.Begun, p.Status
			// A worker that has leased the campaign sees the new state at its next step. Otherwise any worker takes it at once.
			rows, _ = tx.Query(ctx, `
				UPDATE campaigns p SET status = $2, updated_at = clock_timestamp(), started_at = coalesce(started_at, clock_timestamp()), parked = parked OR $3,
					paused_at = CASE WHEN $3 THEN clock_timestamp() ELSE paused_at END,
					lease_until = CASE WHEN worker IS NOT NULL THEN lease_until END
				WHERE id = $1 RETURNING `+campaignColumns, id, string(to), action == broadcast.Pause)
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			p.Progress, p.Begun = progress, begun
			b := &pgx.Batch{}
			if action == broadcast.Start {
				queueCampaignEvent(b, &p, webhook.EventCampaignStarted, 0)
			}
			d := auditlogs.Difference{}
			d.Show("status", old, to)
			if action == broadcast.Start {
				d.Show("audience", nil, p.Size)
			}
			auditlogs.QueueRecord(b, push.ActorOf(ctx), tenant, auditlog.OfCampaign(string(action)), id.String(), d)
			err = tx.SendBatch(ctx, b).Close()
			failpoint.Hit(failpoint.CampaignActed)
			return err
		})
	})
	return p, err
}

// campaignEventSQL writes an event for the webhooks that subscribe to it.
const campaignEventSQL = `
	INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload)
	SELECT w.id, w.tenant_id, $2, json_build_object('type', $2::text, 'timestamp', utc(clock_timestamp()), 'data', $3::json)
	FROM webhooks w WHERE w.tenant_id = $1 AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND $2 = ANY (w.events)`

// campaignEvent is the data of a webhook event about a campaign.
type campaignEvent struct {
	ID        string           `json:"id"`
	Name      string           `json:"name"`
	Channel   string           `json:"channel"`
	Category  string           `json:"category"`
	Status    broadcast.Status `json:"status"`
	Percent   int              `json:"percent"` // of the recipients, those that have ended
	Progress  progressEvent    `json:"progress"`
	Segments  int64            `json:"segments"` // of the text messages that were sent
	StartedAt string           `json:"started_at"`
}

type progressEvent struct {
	Audience  int64 `json:"audience"`
	Pending   int64 `json:"pending"`
	Scheduled int64 `json:"scheduled"`
	Refused   int64 `json:"refused"`
	OptedOut  int64 `json:"opted_out"`
	Invalid   int64 `json:"invalid"`
	Sent      int64 `json:"sent"`
	Failed    int64 `json:"failed"`
	Expired   int64 `json:"expired"`
	Canceled  int64 `json:"canceled"`
	Deferred  int64 `json:"deferred"`
}

// queueCampaignEvent adds a statement to a batch that writes a webhook event about a campaign. percent of its recipients
// have ended.
func queueCampaignEvent(b *pgx.Batch, p *broadcast.Campaign, event webhook.Event, percent int) {
	is := &p.Progress
	data, _ := json.Marshal(campaignEvent{
		ID: p.ID.String(), Name: p.Name, Channel: p.Channel, Category: p.Category, Status: p.Status, Percent: percent, StartedAt: p.StartedAt.UTC().Format(millis),
		Progress: progressEvent{
			is.Audience, is.Pending, is.Scheduled, is.Refused, is.OptedOut, is.Invalid, is.Sent, is.Failed, is.Expired, is.Canceled, is.Deferred,
		},
		Segments: p.Segments,
	})
	b.Queue(campaignEventSQL, p.Tenant, string(event), data)
}

const millis = "2006-01-02T15:04:05.999Z07:00"
