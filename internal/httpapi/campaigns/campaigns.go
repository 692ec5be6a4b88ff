package campaigns

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/rest"
)

// Path is the path of the campaigns.
const Path = "/v1/campaigns"

// campaignView is a campaign as the API shows it.
type campaignView struct {
	ID           string           `json:"id" format:"uuid"`
	Name         string           `json:"name"`
	Status       broadcast.Status `json:"status" enum:"draft,starting,running,pausing,paused,canceling,canceled,finished" doc:"starting: the recipients are being booked; pausing and canceling: nothing more is sent, and the change is in progress; finished: all pushes have ended."`
	Phase        broadcast.Phase  `json:"phase" enum:"draft,scheduled,sending,paused,canceled,sent,sent_with_problems,not_sent" doc:"The progress in everyday words. scheduled: the campaign was started, and no push has been due yet; sending: the first push is due; sent: it was sent to every recipient who has not opted out; sent_with_problems: it was not sent to some; not_sent: it was sent to no recipient."`
	Channel      string           `json:"channel"`
	Category     string           `json:"category"`
	SendAt       *string          `json:"send_at" format:"date-time" nullable:"true" doc:"null: the campaign has a local_time, or is sent when it is started."`
	LocalTime    *string          `json:"local_time" nullable:"true" doc:"The send time on the clocks of time_zone."`
	TimeZone     *string          `json:"time_zone" nullable:"true" doc:"null: each recipient's own zone, or else the default zone of the policy."`
	Spread       string           `json:"spread"`
	OnConflict   string           `json:"on_conflict" enum:"reject,defer"`
	Latest       *string          `json:"latest" format:"date-time" nullable:"true"`
	ExpiresAfter *string          `json:"expires_after" nullable:"true" doc:"null: as configured."`
	Message      rest.RawObject   `json:"message"`
	Metadata     rest.RawObject   `json:"metadata" nullable:"true"`
	Audience     int64            `json:"audience" doc:"The number of recipients in it."`
	Progress     progressView     `json:"progress"`
	Segments     int64            `json:"segments" doc:"The segments of the text messages that were sent: what carriers charge for. 0 on a channel of another type."`
	CreatedAt    string           `json:"created_at" format:"date-time"`
	UpdatedAt    string           `json:"updated_at" format:"date-time"`
	StartedAt    *string          `json:"started_at" format:"date-time" nullable:"true"`
	EndedAt      *string          `json:"ended_at" format:"date-time" nullable:"true"`
}

// progressView counts the recipients of a campaign by their progress.
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

func campaignViewOf(p broadcast.Campaign) campaignView {
	v := campaignView{
		ID: p.ID.String(), Name: p.Name, Status: p.Status, Phase: p.Phase(), Channel: p.Channel, Category: p.Category, SendAt: rest.MaybeTime(p.SendAt), TimeZone: rest.MaybeText(p.TimeZone),
		Spread: recurrence.Span(p.Spread).String(), OnConflict: p.OnConflict, Latest: rest.MaybeTime(p.Latest), Message: rest.RawObject(p.Message), Metadata: rest.RawObject(p.Metadata),
		Audience: p.Size, Progress: progressView(p.Progress), Segments: p.Segments,
		CreatedAt: rest.Stamp(p.CreatedAt), UpdatedAt: rest.Stamp(p.UpdatedAt), StartedAt: rest.MaybeTime(p.StartedAt), EndedAt: rest.MaybeTime(p.EndedAt),
	}
	if !p.LocalTime.IsZero() {
		v.LocalTime = rest.MaybeText(p.LocalTime.Format("2006-01-02T15:04:05"))
	}
	if p.ExpiresAfter > 0 {
		v.ExpiresAfter = rest.MaybeText(recurrence.Span(p.ExpiresAfter).String())
	}
	return v
}

func (h *campaigns) createCampaign(c *rest.Call) error {
	key := campaign.Key{Text: c.IdempotencyKey(&c.Errors)}
	change, body, err := h.readCampaign(c, &campaignFields, broadcast.Campaign{}, &c.Errors)
	if err != nil {
		return err
	}
	if key.Text != "" {
		key.Hash = rest.RequestHash(Path, body)
	}
	p, replayed, err := h.svc.Create(c.Request.Context(), c.Caller.Tenant, change, key)
	if err != nil {
		return rest.NoSuch("campaign", err)
	}
	v := campaignViewOf(p)
	c.Tag(p.UpdatedAt, err)
	return c.Created(Path+"/"+v.ID, replayed, v)
}

func (h *campaigns) getCampaign(c *rest.Call) error {
	return c.ByID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.Campaign(ctx, tenant, id)
		c.Tag(p.UpdatedAt, err)
		return campaignViewOf(p), err
	})
}

func (h *campaigns) deleteCampaign(c *rest.Call) error {
	return c.ByID("campaign", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteDraft(ctx, tenant, id)
	})
}

func (h *campaigns) changeCampaign(c *rest.Call) error {
	var old broadcast.Campaign
	if len(c.Errors.List) == 0 {
		var err error
		if old, err = h.svc.Campaign(c.Request.Context(), c.Caller.Tenant, c.ID); err != nil {
			return rest.NoSuch("campaign", err)
		}
	}
	change, _, err := h.readCampaign(c, &campaignChanges, old, &c.Errors)
	if err != nil {
		return err
	}
	p, err := h.svc.Change(c.Request.Context(), c.Caller, c.ID, change, c.Unchanged)
	if err != nil {
		return rest.NoSuch("campaign", err)
	}
	c.Tag(p.UpdatedAt, err)
	return c.Answer(http.StatusOK, campaignViewOf(p))
}

// campaignFilter selects campaigns.
type campaignFilter struct {
	status broadcast.Status
	rest.PageParams
}

var campaignsParams = rest.Pages(
	rest.Row("status", rest.Optional, rest.OneOf(func(q *campaignFilter, s broadcast.Status) { q.status = s }, broadcast.Statuses...), "Only entries with this status.", nil),
)

// listCampaigns answers with a page of the tenant's campaigns.
func (h *campaigns) listCampaigns(c *rest.Call) error {
	return rest.List(c, &campaignsParams, func(q campaignFilter, after broadcast.Position) ([]broadcast.Campaign, *broadcast.Position, error) {
		page, err := h.svc.Campaigns(c.Request.Context(), c.Caller.Tenant, q.status, after, q.Size)
		return page.Campaigns, page.Next, err
	}, func(all []broadcast.Campaign, next string) any {
		return campaignsView{rest.ViewsOf(all, campaignViewOf), next}
	})
}

func exampleCampaign(status broadcast.Status) broadcast.Campaign {
	p := broadcast.Campaign{
		ID: uuid.MustParse(rest.ExampleID), Name: "Black Friday", Channel: "push", Category: "marketing", SendAt: rest.ExampleTime(0), Spread: 30 * time.Minute,
		OnConflict: "defer", Latest: rest.ExampleTime(36 * time.Hour), ExpiresAfter: 4 * time.Hour, Metadata: json.RawMessage(`{}`),
		Message: json.RawMessage(`{"title": "Hi {{ first_name | default: 'there' }}", "body": "Everything must go."}`),
		Status:  status, Size: 1000, CreatedAt: rest.ExampleTime(-48 * time.Hour), UpdatedAt: rest.ExampleTime(-48 * time.Hour),
		Progress: broadcast.Progress{Audience: 1000, Pending: 1000},
	}
	if status != broadcast.Draft {
		p.StartedAt, p.Begun = rest.ExampleTime(-time.Hour), true
		p.Progress = broadcast.Progress{Audience: 1000, Scheduled: 931, Refused: 12, OptedOut: 40, Invalid: 2, Sent: 15, Deferred: 85}
	}
	return p
}

// The problems with campaigns. Clients know them by their names.
var (
	TooMany = rest.NewKind("too-many-campaigns", 409, "Too many campaigns", "The tenant has the maximum number of campaigns that have not ended; delete a draft first.")
	State   = rest.NewKind("campaign-state", 409, "Campaign state", "The campaign's status does not allow the operation, or a campaign to be deleted is the pattern of schedules; campaign is its current state.")
)

type campaignProblem struct {
	rest.Problem
	Campaign campaignView `json:"campaign" doc:"The current state of the campaign."`
}

// ProblemOf returns the problem for an error about campaigns, or nil.
func ProblemOf(err error) rest.Problemer {
	if state, ok := errors.AsType[*broadcast.StateError](err); ok {
		return &campaignProblem{State.Because(state.Detail), campaignViewOf(state.Campaign)}
	}
	return rest.PlainProblem(err, plainCampaignProblems)
}

var plainCampaignProblems = []rest.Plain{
	rest.PlainOf(broadcast.ErrTooMany, TooMany, "the tenant has the maximum number of campaigns that have not ended; delete a draft first"),
}

// ExampleOf returns an example of a problem with campaigns, or nil.
func ExampleOf(k rest.Kind) rest.Problemer {
	if k != State {
		return nil
	}
	return &campaignProblem{k.Because("the campaign is running; it can only be changed while it is a draft"), campaignViewOf(exampleCampaign(broadcast.Running))}
}
