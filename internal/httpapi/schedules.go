package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurring"
)

const schedulesPath = "/v1/schedules"

// scheduleView is a schedule as the API shows it.
type scheduleView struct {
	ID        string       `json:"id" format:"uuid"`
	Name      string       `json:"name"`
	Status    string       `json:"status" enum:"active,paused,ended" doc:"ended: the schedule has no further occurrences."`
	Cron      string       `json:"cron"`
	TimeZone  string       `json:"time_zone"`
	Push      *patternView `json:"push" doc:"The pattern of each push; null: the schedule has a campaign."`
	Campaign  *string      `json:"campaign" format:"uuid" nullable:"true" doc:"The pattern of each campaign; null: the schedule has a push."`
	CatchUp   push.CatchUp `json:"catch_up" enum:"skip,last"`
	Paused    bool         `json:"paused"`
	Until     *string      `json:"until" format:"date-time" nullable:"true"`
	NextAt    *string      `json:"next_at" format:"date-time" nullable:"true" doc:"The next occurrence; null while the schedule is paused, and after its end."`
	CreatedAt string       `json:"created_at" format:"date-time"`
	UpdatedAt string       `json:"updated_at" format:"date-time"`
}

// TransformSchema allows push to be null.
func (*scheduleView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return withNull(s, "push")
}

// patternView is what each push of a schedule is like. What is absent is as in a submit.
type patternView struct {
	Recipient    string    `json:"recipient"`
	Channel      string    `json:"channel,omitempty"`
	Category     string    `json:"category,omitempty"`
	To           string    `json:"to,omitempty"`
	Message      rawObject `json:"message"`
	Template     bool      `json:"template,omitempty"`
	Variables    rawObject `json:"variables,omitempty"`
	Metadata     rawObject `json:"metadata,omitempty"`
	OnConflict   string    `json:"on_conflict,omitempty" enum:"reject,defer"`
	Latest       *string   `json:"latest,omitempty" format:"date-time"`
	ExpiresAt    *string   `json:"expires_at,omitempty" format:"date-time"`
	ExpiresAfter string    `json:"expires_after,omitempty"`
}

func patternViewOf(p *push.Pattern) patternView {
	v := patternView{
		Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, To: p.To, Message: rawObject(p.Message), Template: p.Template, Variables: rawObject(p.Variables), Metadata: rawObject(p.Metadata), OnConflict: p.OnConflict,
		Latest: maybe(p.Latest), ExpiresAt: maybe(p.ExpiresAt),
	}
	if p.ExpiresAfter > 0 {
		v.ExpiresAfter = p.ExpiresAfter.String()
	}
	return v
}

type schedulesView struct {
	Schedules     []scheduleView `json:"schedules"`
	NextPageToken string         `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func scheduleViewOf(p push.Schedule) scheduleView {
	v := scheduleView{
		ID: p.ID.String(), Name: p.Name, Status: p.Status(), Cron: p.Cron, TimeZone: p.TimeZone, CatchUp: p.CatchUp, Paused: p.Paused,
		Until: maybe(p.Until), CreatedAt: stamp(p.CreatedAt), UpdatedAt: stamp(p.UpdatedAt),
	}
	if p.Campaign == uuid.Nil {
		pattern := patternViewOf(&p.Pattern)
		v.Push = &pattern
	} else {
		v.Campaign = maybeText(p.Campaign.String())
	}
	if v.Status == push.ScheduleActive {
		v.NextAt = maybe(p.NextAt)
	}
	return v
}

func (h *schedules) createSchedule(c *call) error {
	key := recurring.Key{Text: c.idempotencyKey(&c.bad)}
	change, body, err := h.readSchedule(c, &scheduleFields, push.Schedule{}, &c.bad)
	if err != nil {
		return err
	}
	if key.Text != "" {
		key.Hash = requestHash(schedulesPath, body)
	}
	p, replayed, err := h.svc.Create(c.r.Context(), c.caller.Tenant, change, key)
	if err != nil {
		return noSuch("schedule", err)
	}
	v := scheduleViewOf(p)
	c.tag(p.UpdatedAt, err)
	return c.created(schedulesPath+"/"+v.ID, replayed, v)
}

func (h *schedules) getSchedule(c *call) error {
	return c.byID("schedule", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.Schedule(ctx, tenant, id)
		c.tag(p.UpdatedAt, err)
		return scheduleViewOf(p), err
	})
}

func (h *schedules) deleteSchedule(c *call) error {
	return c.byID("schedule", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteSchedule(ctx, tenant, id)
	})
}

func (h *schedules) changeSchedule(c *call) error {
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	var old push.Schedule
	if len(c.bad.list) == 0 {
		var err error
		if old, err = h.svc.Schedule(c.r.Context(), c.caller.Tenant, c.id); err != nil {
			return noSuch("schedule", err)
		}
	}
	change, _, err := h.readSchedule(c, &scheduleChanges, old, &c.bad)
	if err != nil {
		return err
	}
	p, err := h.svc.Change(c.r.Context(), c.caller.Tenant, c.id, change, c.unchanged)
	if err != nil {
		return noSuch("schedule", err)
	}
	c.tag(p.UpdatedAt, err)
	return c.answer(http.StatusOK, scheduleViewOf(p))
}

var schedulesParams = pages[pageParams]()

// listSchedules answers with a page of the tenant's schedules.
func (h *schedules) listSchedules(c *call) error {
	return list(c, &schedulesParams, func(q pageParams, after uuid.UUID) ([]push.Schedule, *uuid.UUID, error) {
		page, err := h.svc.Schedules(c.r.Context(), c.caller.Tenant, after, q.size)
		return page.Schedules, orNowhere(page.Next), err
	}, func(all []push.Schedule, next string) any { return schedulesView{viewsOf(all, scheduleViewOf), next} })
}

var exampleNewSchedule = json.RawMessage(`{"name": "Monday digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "catch_up": "skip", "paused": false, "until": "2027-06-30T00:00:00Z",
	"push": {"recipient": "user-42", "channel": "email", "message": {"title": "Your week", "body": "Seven new messages."}, "expires_after": "4h"}}`)

var tooManySchedules = newKind("too-many-schedules", 409, "Too many schedules", "The tenant has the maximum number of schedules; delete one first.")

// scheduleProblemOf returns the problem for an error about schedules, or nil.
func scheduleProblemOf(err error) problemer { return plainProblem(err, plainScheduleProblems) }

var plainScheduleProblems = []plain{
	plainOf(push.ErrTooManySchedules, tooManySchedules, "the tenant has the maximum number of schedules; delete one first"),
}
