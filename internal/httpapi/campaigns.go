package httpapi

import (
	"context"
	"encoding/json"
	"errors"
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

func (h *campaigns) createCampaign(c *call) error {
	key := campaign.Key{Text: c.idempotencyKey(&c.bad)}
	change, body, err := h.readCampaign(c, &campaignFields, push.Campaign{}, &c.bad)
	if err != nil {
		return err
	}
	if key.Text != "" {
		key.Hash = requestHash(campaignsPath, body)
	}
	p, replayed, err := h.svc.Create(c.r.Context(), c.caller.Tenant, change, key)
	if err != nil {
		return noSuch("campaign", err)
	}
	v := campaignViewOf(p)
	c.tag(p.UpdatedAt, err)
	return c.created(campaignsPath+"/"+v.ID, replayed, v)
}

func (h *campaigns) getCampaign(c *call) error {
	return c.byID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.Campaign(ctx, tenant, id)
		c.tag(p.UpdatedAt, err)
		return campaignViewOf(p), err
	})
}

func (h *campaigns) deleteCampaign(c *call) error {
	return c.byID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteDraft(ctx, tenant, id)
	})
}

func (h *campaigns) changeCampaign(c *call) error {
	var old push.Campaign
	if len(c.bad.list) == 0 {
		var err error
		if old, err = h.svc.Campaign(c.r.Context(), c.caller.Tenant, c.id); err != nil {
			return noSuch("campaign", err)
		}
	}
	change, _, err := h.readCampaign(c, &campaignChanges, old, &c.bad)
	if err != nil {
		return err
	}
	p, err := h.svc.Change(c.r.Context(), c.caller, c.id, change, c.unchanged)
	if err != nil {
		return noSuch("campaign", err)
	}
	c.tag(p.UpdatedAt, err)
	return c.answer(http.StatusOK, campaignViewOf(p))
}

// campaignFilter is which campaigns are asked for.
type campaignFilter struct {
	status push.CampaignStatus
	pageParams
}

var campaignsParams = pages(
	row("status", optional, oneOf(func(q *campaignFilter, s push.CampaignStatus) { q.status = s }, push.CampaignStatuses...), "Only entries with this status.", nil),
)

// listCampaigns answers with a page of the tenant's campaigns.
func (h *campaigns) listCampaigns(c *call) error {
	return list(c, &campaignsParams, func(q campaignFilter, after push.CampaignPosition) ([]push.Campaign, *push.CampaignPosition, error) {
		page, err := h.svc.Campaigns(c.r.Context(), c.caller.Tenant, q.status, after, q.size)
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

// The problems with campaigns. Clients know them by their names.
var (
	tooManyCampaigns = newKind("too-many-campaigns", 409, "Too many campaigns", "The tenant has the maximum number of campaigns that have not ended; delete a draft first.")
	campaignState    = newKind("campaign-state", 409, "Campaign state", "The campaign's status does not allow the operation, or a campaign to be deleted is the pattern of schedules; campaign is its current state.")
)

type campaignProblem struct {
	Problem
	Campaign campaignView `json:"campaign" doc:"The current state of the campaign."`
}

// campaignProblemOf returns the problem for an error about campaigns, or nil.
func campaignProblemOf(err error) problemer {
	if state, ok := errors.AsType[*push.CampaignStateError](err); ok {
		return &campaignProblem{campaignState.because(state.Detail), campaignViewOf(state.Campaign)}
	}
	return plainProblem(err, plainCampaignProblems)
}

var plainCampaignProblems = []plain{
	plainOf(push.ErrTooManyCampaigns, tooManyCampaigns, "the tenant has the maximum number of campaigns that have not ended; delete a draft first"),
}

// campaignExample returns an example of a problem with campaigns, or nil.
func campaignExample(k kind) problemer {
	if k != campaignState {
		return nil
	}
	return &campaignProblem{k.because("the campaign is running; it can only be changed while it is a draft"), campaignViewOf(exampleCampaign(push.CampaignRunning))}
}
