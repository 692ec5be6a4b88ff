// Package schedules has the operations of the REST API on schedules and their runs.
package schedules

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Schedules"

// schedules serves schedules and their runs.
type schedules struct {
	svc   *recurring.Service
	forms pushes.Forms
}

// Operations returns the operations on schedules.
func Operations(s *rest.Spec, svc *recurring.Service, checks pushes.FormService) []rest.Operation {
	return (&schedules{svc, pushes.NewForms(checks)}).routes(s)
}

// Path is the path of the schedules.
const Path = "/v1/schedules"

// scheduleView is a schedule as the API shows it.
type scheduleView struct {
	ID        string             `json:"id" format:"uuid"`
	Name      string             `json:"name"`
	Status    string             `json:"status" enum:"active,paused,ended" doc:"ended: the schedule has no further occurrences."`
	Cron      string             `json:"cron"`
	TimeZone  string             `json:"time_zone"`
	Push      *patternView       `json:"push" doc:"The pattern of each push; null: the schedule has a campaign."`
	Campaign  *string            `json:"campaign" format:"uuid" nullable:"true" doc:"The pattern of each campaign; null: the schedule has a push."`
	CatchUp   recurrence.CatchUp `json:"catch_up" enum:"skip,last"`
	Paused    bool               `json:"paused"`
	Until     *string            `json:"until" format:"date-time" nullable:"true"`
	NextAt    *string            `json:"next_at" format:"date-time" nullable:"true" doc:"The next occurrence; null while the schedule is paused, and after its end."`
	CreatedAt string             `json:"created_at" format:"date-time"`
	UpdatedAt string             `json:"updated_at" format:"date-time"`
}

// TransformSchema allows push to be null.
func (*scheduleView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	return rest.WithNull(s, "push")
}

// patternView is the pattern of each push of a schedule. Absent members have the defaults of a submit.
type patternView struct {
	Recipient    string         `json:"recipient"`
	Channel      string         `json:"channel,omitempty"`
	Category     string         `json:"category,omitempty"`
	To           string         `json:"to,omitempty"`
	Message      rest.RawObject `json:"message"`
	Template     bool           `json:"template,omitempty"`
	Variables    rest.RawObject `json:"variables,omitempty"`
	Metadata     rest.RawObject `json:"metadata,omitempty"`
	OnConflict   string         `json:"on_conflict,omitempty" enum:"reject,defer"`
	Latest       *string        `json:"latest,omitempty" format:"date-time"`
	ExpiresAt    *string        `json:"expires_at,omitempty" format:"date-time"`
	ExpiresAfter string         `json:"expires_after,omitempty"`
}

func patternViewOf(p *recurrence.Pattern) patternView {
	v := patternView{
		Recipient: p.Recipient, Channel: p.Channel, Category: p.Category, To: p.To, Message: rest.RawObject(p.Message), Template: p.Template, Variables: rest.RawObject(p.Variables), Metadata: rest.RawObject(p.Metadata), OnConflict: p.OnConflict,
		Latest: rest.MaybeTime(p.Latest), ExpiresAt: rest.MaybeTime(p.ExpiresAt),
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

func scheduleViewOf(p recurrence.Schedule) scheduleView {
	v := scheduleView{
		ID: p.ID.String(), Name: p.Name, Status: p.Status(), Cron: p.Cron, TimeZone: p.TimeZone, CatchUp: p.CatchUp, Paused: p.Paused,
		Until: rest.MaybeTime(p.Until), CreatedAt: rest.Stamp(p.CreatedAt), UpdatedAt: rest.Stamp(p.UpdatedAt),
	}
	if p.Campaign == uuid.Nil {
		pattern := patternViewOf(&p.Pattern)
		v.Push = &pattern
	} else {
		v.Campaign = rest.MaybeText(p.Campaign.String())
	}
	if v.Status == recurrence.Active {
		v.NextAt = rest.MaybeTime(p.NextAt)
	}
	return v
}

func (h *schedules) createSchedule(c *rest.Call) error {
	key := recurring.Key{Text: c.IdempotencyKey(&c.Errors)}
	change, body, err := h.readSchedule(c, &scheduleFields, recurrence.Schedule{}, &c.Errors)
	if err != nil {
		return err
	}
	if key.Text != "" {
		key.Hash = rest.RequestHash(Path, body)
	}
	p, replayed, err := h.svc.Create(c.Request.Context(), c.Caller.Tenant, change, key)
	if err != nil {
		return rest.NoSuch("schedule", err)
	}
	v := scheduleViewOf(p)
	c.Tag(p.UpdatedAt, err)
	return c.Created(Path+"/"+v.ID, replayed, v)
}

func (h *schedules) getSchedule(c *rest.Call) error {
	return c.ByID("schedule", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.svc.Schedule(ctx, tenant, id)
		c.Tag(p.UpdatedAt, err)
		return scheduleViewOf(p), err
	})
}

func (h *schedules) deleteSchedule(c *rest.Call) error {
	return c.ByID("schedule", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteSchedule(ctx, tenant, id)
	})
}

func (h *schedules) changeSchedule(c *rest.Call) error {
	if err := c.Reserve(rest.PushBytes); err != nil {
		return err
	}
	var old recurrence.Schedule
	if len(c.Errors.List) == 0 {
		var err error
		if old, err = h.svc.Schedule(c.Request.Context(), c.Caller.Tenant, c.ID); err != nil {
			return rest.NoSuch("schedule", err)
		}
	}
	change, _, err := h.readSchedule(c, &scheduleChanges, old, &c.Errors)
	if err != nil {
		return err
	}
	p, err := h.svc.Change(c.Request.Context(), c.Caller.Tenant, c.ID, change, c.Unchanged)
	if err != nil {
		return rest.NoSuch("schedule", err)
	}
	c.Tag(p.UpdatedAt, err)
	return c.Answer(http.StatusOK, scheduleViewOf(p))
}

var schedulesParams = rest.Pages[rest.PageParams]()

// listSchedules answers with a page of the tenant's schedules.
func (h *schedules) listSchedules(c *rest.Call) error {
	return rest.List(c, &schedulesParams, func(q rest.PageParams, after uuid.UUID) ([]recurrence.Schedule, *uuid.UUID, error) {
		page, err := h.svc.Schedules(c.Request.Context(), c.Caller.Tenant, after, q.Size)
		return page.Schedules, rest.OrNowhere(page.Next), err
	}, func(all []recurrence.Schedule, next string) any {
		return schedulesView{rest.ViewsOf(all, scheduleViewOf), next}
	})
}

var exampleNewSchedule = json.RawMessage(`{"name": "Monday digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "catch_up": "skip", "paused": false, "until": "2027-06-30T00:00:00Z",
	"push": {"recipient": "user-42", "channel": "email", "message": {"title": "Your week", "body": "Seven new messages."}, "expires_after": "4h"}}`)

// TooMany is the problem of a tenant with the maximum number of schedules.
var TooMany = rest.NewKind("too-many-schedules", 409, "Too many schedules", "The tenant has the maximum number of schedules; delete one first.")

// ProblemOf returns the problem for an error about schedules, or nil.
func ProblemOf(err error) rest.Problemer { return rest.PlainProblem(err, plainScheduleProblems) }

var plainScheduleProblems = []rest.Plain{
	rest.PlainOf(recurrence.ErrTooMany, TooMany, "the tenant has the maximum number of schedules; delete one first"),
}
