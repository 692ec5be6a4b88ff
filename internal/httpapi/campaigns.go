package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
)

const campaignsPath = "/v1/campaigns"

// campaignView is a campaign as the API shows it.
type campaignView struct {
	ID           string              `json:"id" format:"uuid"`
	Name         string              `json:"name"`
	Status       push.CampaignStatus `json:"status" enum:"draft,starting,running,pausing,paused,canceling,canceled,finished" doc:"starting: the recipients are being booked; pausing and canceling: nothing more is sent, and the change is in progress; finished: all pushes have ended."`
	Phase        push.CampaignPhase  `json:"phase" enum:"draft,scheduled,sending,paused,canceled,sent,sent_with_problems,not_sent" doc:"The progress in everyday words. scheduled: the campaign was started, and no push has been due yet; sending: the first push is due; sent: it was sent to every recipient who has not opted out; sent_with_problems: it was not sent to some; not_sent: it was sent to no recipient."`
	Channel      string              `json:"channel"`
	Category     string              `json:"category"`
	SendAt       *string             `json:"send_at" format:"date-time" nullable:"true" doc:"null: the campaign has a local_time, or is sent when it is started."`
	LocalTime    *string             `json:"local_time" nullable:"true" doc:"The send time on the clocks of time_zone."`
	TimeZone     *string             `json:"time_zone" nullable:"true" doc:"null: each recipient's own zone, or else the default zone of the policy."`
	Spread       string              `json:"spread"`
	OnConflict   string              `json:"on_conflict" enum:"reject,defer"`
	Latest       *string             `json:"latest" format:"date-time" nullable:"true"`
	ExpiresAfter *string             `json:"expires_after" nullable:"true" doc:"null: as configured."`
	Message      rawObject           `json:"message"`
	Metadata     rawObject           `json:"metadata" nullable:"true"`
	Audience     int64               `json:"audience" doc:"The number of recipients in it."`
	Progress     progressView        `json:"progress"`
	CreatedAt    string              `json:"created_at" format:"date-time"`
	UpdatedAt    string              `json:"updated_at" format:"date-time"`
	StartedAt    *string             `json:"started_at" format:"date-time" nullable:"true"`
	EndedAt      *string             `json:"ended_at" format:"date-time" nullable:"true"`
}

// progressView is how many recipients of a campaign have come how far.
type progressView struct {
	Audience  int64 `json:"audience" doc:"All recipients: always the sum of the other counts except deferred."`
	Pending   int64 `json:"pending" doc:"Not booked yet."`
	Scheduled int64 `json:"scheduled" doc:"Booked, and not ended."`
	Refused   int64 `json:"refused" doc:"The quota or a cap had no place."`
	OptedOut  int64 `json:"opted_out"`
	Invalid   int64 `json:"invalid" doc:"No push can be created from their lines."`
	Sent      int64 `json:"sent"`
	Failed    int64 `json:"failed"`
	Expired   int64 `json:"expired"`
	Canceled  int64 `json:"canceled" doc:"Includes recipients who were never booked, because the campaign was canceled before."`
	Deferred  int64 `json:"deferred" doc:"Recipients booked at another time than requested. They are included in the other counts, too."`
}

type campaignsView struct {
	Campaigns     []campaignView `json:"campaigns"`
	NextPageToken string         `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func campaignViewOf(p push.Campaign) campaignView {
	v := campaignView{
		ID: p.ID.String(), Name: p.Name, Status: p.Status, Phase: p.Phase(), Channel: p.Channel, Category: p.Category, SendAt: maybe(p.SendAt), TimeZone: maybeText(p.TimeZone),
		Spread: push.Span(p.Spread).String(), OnConflict: p.OnConflict, Latest: maybe(p.Latest), Message: rawObject(p.Message), Metadata: rawObject(p.Metadata),
		Audience: p.Size, Progress: progressView(p.Progress),
		CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt), StartedAt: maybe(p.StartedAt), EndedAt: maybe(p.EndedAt),
	}
	if !p.LocalTime.IsZero() {
		v.LocalTime = maybeText(p.LocalTime.Format("2006-01-02T15:04:05"))
	}
	if p.ExpiresAfter > 0 {
		v.ExpiresAfter = maybeText(push.Span(p.ExpiresAfter).String())
	}
	return v
}

// maybeText is a text, or nil for the empty one.
func maybeText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (a *api) createCampaign(c *call) error {
	key := campaign.Key{Text: c.idempotencyKey(&c.bad)}
	change, body, err := a.readCampaign(c, &campaignFields, push.Campaign{}, &c.bad)
	if err != nil {
		return err
	}
	if key.Text != "" {
		key.Hash = requestHash(campaignsPath, body)
	}
	p, replayed, err := a.cfg.Campaigns.Create(c.r.Context(), c.caller.Tenant, change, key)
	if err != nil {
		return noSuch("campaign", err)
	}
	v := campaignViewOf(p)
	c.tag(p.UpdatedAt, err)
	return a.created(c, campaignsPath+"/"+v.ID, replayed, v)
}

func (a *api) getCampaign(c *call) error {
	return a.byID(c, "campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := a.cfg.Campaigns.Campaign(ctx, tenant, id)
		c.tag(p.UpdatedAt, err)
		return campaignViewOf(p), err
	})
}

func (a *api) deleteCampaign(c *call) error {
	return a.byID(c, "campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, a.cfg.Campaigns.DeleteDraft(ctx, tenant, id)
	})
}

func (a *api) changeCampaign(c *call) error {
	var old push.Campaign
	if len(c.bad.list) == 0 {
		var err error
		if old, err = a.cfg.Campaigns.Campaign(c.r.Context(), c.caller.Tenant, c.id); err != nil {
			return noSuch("campaign", err)
		}
	}
	change, _, err := a.readCampaign(c, &campaignChanges, old, &c.bad)
	if err != nil {
		return err
	}
	p, err := a.cfg.Campaigns.Change(c.r.Context(), c.caller, c.id, change, c.unchanged)
	if err != nil {
		return noSuch("campaign", err)
	}
	c.tag(p.UpdatedAt, err)
	return a.answer(c.w, http.StatusOK, campaignViewOf(p))
}

// campaignFilter is which campaigns are asked for.
type campaignFilter struct {
	status push.CampaignStatus
	pageParams
}

var campaignsParams = pages(
	field[campaignFilter]{"status", optional, oneOf(func(q *campaignFilter, s push.CampaignStatus) { q.status = s }, push.CampaignStatuses...), "Only entries with this status.", nil},
)

// listCampaigns answers with a page of the tenant's campaigns.
func (a *api) listCampaigns(c *call) error {
	return list(a, c, &campaignsParams, func(q campaignFilter, after push.CampaignPosition) ([]push.Campaign, *push.CampaignPosition, error) {
		page, err := a.cfg.Campaigns.Campaigns(c.r.Context(), c.caller.Tenant, q.status, after, q.size)
		return page.Campaigns, page.Next, err
	}, func(all []push.Campaign, next string) any { return campaignsView{viewsOf(all, campaignViewOf), next} })
}

func exampleCampaign(status push.CampaignStatus) push.Campaign {
	p := push.Campaign{
		ID: uuid.MustParse(exampleID), Name: "Black Friday", Channel: "push", Category: "marketing", SendAt: exampleTime(0), Spread: 30 * time.Minute,
		OnConflict: "defer", Latest: exampleTime(36 * time.Hour), ExpiresAfter: 4 * time.Hour, Metadata: json.RawMessage(`{}`),
		Message: json.RawMessage(`{"title": "Hi {{ first_name | default: 'there' }}", "body": "Everything must go."}`),
		Status:  status, Size: 1000, CreatedAt: exampleTime(-48 * time.Hour), UpdatedAt: exampleTime(-48 * time.Hour),
		Progress: push.CampaignProgress{Audience: 1000, Pending: 1000},
	}
	if status != push.CampaignDraft {
		p.StartedAt, p.Begun = exampleTime(-time.Hour), true
		p.Progress = push.CampaignProgress{Audience: 1000, Scheduled: 931, Refused: 12, OptedOut: 40, Invalid: 2, Sent: 15, Deferred: 85}
	}
	return p
}
