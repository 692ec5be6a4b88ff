package campaigns

import (
	"context"
	"encoding/json"

	"github.com/sendquota/sendquota/internal/store/auditlog"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// ActOnCampaign gives a campaign the state that an action leads to. Once it has returned, the action is in force: no chunk is
// booked, and no push is claimed, of a campaign that is held. What the state asks for is done by workers. Check, which may be nil, is asked about a
// campaign whose state changes. The errors are its own, [push.ErrNotFound] and [*push.CampaignStateError].
func (s *Store) ActOnCampaign(ctx context.Context, tenant, id uuid.UUID, action push.CampaignAction, check func(push.Campaign) error) (p push.Campaign, err error) {
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
			if check != nil {
				if err := check(p); err != nil {
					return err
				}
			}
			progress, begun, old := p.Progress, p.Begun, p.Status
			// A worker that has the campaign sees its new state at the next step. Else any worker takes it at once.
			rows, _ = tx.Query(ctx, `
				UPDATE campaigns p SET status = $2, updated_at = clock_timestamp(), started_at = coalesce(started_at, clock_timestamp()), parked = parked OR $3,
					paused_at = CASE WHEN $3 THEN clock_timestamp() ELSE paused_at END,
					lease_until = CASE WHEN worker IS NOT NULL THEN lease_until END
				WHERE id = $1 RETURNING `+campaignColumns, id, string(to), action == push.CampaignPause)
			if p, err = pgx.CollectExactlyOneRow(rows, collectCampaign); err != nil {
				return err
			}
			p.Progress, p.Begun = progress, begun
			b := &pgx.Batch{}
			if action == push.CampaignStart {
				queueCampaignEvent(b, &p, push.EventCampaignStarted, 0)
			}
			d := auditlog.Difference{}
			d.Show("status", old, to)
			if action == push.CampaignStart {
				d.Show("audience", nil, p.Size)
			}
			auditlog.QueueRecord(b, push.ActorOf(ctx), tenant, action.Acted(), id.String(), d)
			err = tx.SendBatch(ctx, b).Close()
			failpoint.Hit(failpoint.CampaignActed)
			return err
		})
	})
	return p, err
}

// campaignEventSQL writes an event for the webhooks that want it.
const campaignEventSQL = `
	INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload)
	SELECT w.id, w.tenant_id, $2, json_build_object('type', $2::text, 'timestamp', utc(clock_timestamp()), 'data', $3::json)
	FROM webhooks w WHERE w.tenant_id = $1 AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND $2 = ANY (w.events)`

// campaignTold is what webhooks are told of a campaign.
type campaignTold struct {
	ID        string              `json:"id"`
	Name      string              `json:"name"`
	Channel   string              `json:"channel"`
	Category  string              `json:"category"`
	Status    push.CampaignStatus `json:"status"`
	Percent   int                 `json:"percent"` // of the recipients that have ended
	Progress  progressTold        `json:"progress"`
	StartedAt string              `json:"started_at"`
}

type progressTold struct {
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

// queueCampaignEvent has webhooks told of a campaign of which so many percent have ended.
func queueCampaignEvent(b *pgx.Batch, p *push.Campaign, event push.Event, percent int) {
	is := &p.Progress
	data, _ := json.Marshal(campaignTold{
		ID: p.ID.String(), Name: p.Name, Channel: p.Channel, Category: p.Category, Status: p.Status, Percent: percent, StartedAt: p.StartedAt.UTC().Format(millis),
		Progress: progressTold{
			is.Audience, is.Pending, is.Scheduled, is.Refused, is.OptedOut, is.Invalid, is.Sent, is.Failed, is.Expired, is.Canceled, is.Deferred,
		},
	})
	b.Queue(campaignEventSQL, p.Tenant, string(event), data)
}

const millis = "2006-01-02T15:04:05.999Z07:00"
