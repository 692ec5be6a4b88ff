// Package pauses has the operations of the REST API on pauses, which stop sending.
package pauses

import (
	"context"
	"errors"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/rest"
)

// The group of these operations in the documentation.
const Tag = "Pauses"

// Path is the path of the pauses.
const Path = "/v1/pauses"

// Store keeps pauses, and knows campaigns.
type Store interface {
	CreatePause(ctx context.Context, p pause.Pause, given pause.Given) (made pause.Pause, found bool, err error)
	DeletePause(ctx context.Context, tenant, id uuid.UUID) (pause.Pause, error)
	Pauses(ctx context.Context, tenant uuid.UUID, after pause.Position, limit int) (pause.Page, error)
	Pause(ctx context.Context, tenant, id uuid.UUID) (pause.Pause, error)
	Campaign(ctx context.Context, tenant, id uuid.UUID) (broadcast.Campaign, error)
}

// Names lists the names that a pause can have.
type Names struct {
	Channels   func(tenant uuid.UUID) []string
	Categories func(ctx context.Context, tenant uuid.UUID) ([]string, error) // that the tenant's policy or its pushes have
}

// pauses serves pauses.
type pauses struct {
	store Store
	names Names
}

// Operations returns the operations on pauses.
func Operations(s *rest.Spec, store Store, names Names) []rest.Operation {
	return (&pauses{store, names}).routes(s)
}

// pauseView is a pause as the API shows it.
type pauseView struct {
	ID        string      `json:"id" format:"uuid"`
	Scope     pause.Scope `json:"scope" enum:"all,channel,category,campaign"`
	Name      *string     `json:"name" nullable:"true" doc:"The channel, the category, or the id of the campaign; null: the scope is all."`
	Reason    string      `json:"reason"`
	Until     *string     `json:"until" format:"date-time" nullable:"true" doc:"The end of the pause; null: it has none, and goes on until it is deleted."`
	Operator  bool        `json:"operator" doc:"true: the operator has paused all tenants. Only the operator can end this pause."`
	CreatedAt string      `json:"created_at" format:"date-time"`
	Warning   string      `json:"warning,omitempty" doc:"In the answer to a request for a pause: why it may not stop what was meant, such as a category that no policy and no push has so far. Absent: nothing is known against it."`
}

type pausesView struct {
	Pauses        []pauseView `json:"pauses" doc:"The latest first."`
	NextPageToken string      `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func pauseViewOf(p pause.Pause) pauseView {
	return pauseView{
		ID: p.ID.String(), Scope: p.Scope, Name: rest.MaybeText(p.Name), Reason: p.Reason, Until: rest.MaybeTime(p.Until),
		Operator: p.Tenant == uuid.Nil, CreatedAt: rest.Stamp(p.CreatedAt),
	}
}

func (h *pauses) createPause(c *rest.Call) error {
	f, err := h.readPause(c)
	if err != nil {
		return err
	}
	f.ID, f.Tenant = uuid.Must(uuid.NewV7()), c.Caller.Tenant
	p, found, err := h.store.CreatePause(c.Request.Context(), f.Pause, f.given)
	var late rest.FieldErrors
	switch {
	case errors.Is(err, pause.ErrNoCampaign):
		late.Add("name", noCampaign, f.Name)
	case errors.Is(err, pause.ErrPast):
		late.Add("until", "must be in the future", rest.Stamp(f.Until))
	case err != nil:
		return rest.NoSuch("tenant", err)
	}
	if c.Errors.AddAll("body", late); len(c.Errors.List) > 0 {
		return c.Errors.Err()
	}
	v := pauseViewOf(p)
	if p.Scope == pause.Category {
		// The pause is in force: that the names cannot be read is no error of it.
		if known, err := h.names.Categories(c.Request.Context(), c.Caller.Tenant); err == nil {
			v.Warning = p.Warning(known)
		}
	}
	c.Header("Location", Path+"/"+v.ID)
	if found {
		return c.Answer(http.StatusOK, v)
	}
	return c.Answer(http.StatusCreated, v)
}

func (h *pauses) getPause(c *rest.Call) error {
	return c.ByID("pause", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		p, err := h.store.Pause(ctx, tenant, id)
		return pauseViewOf(p), err
	})
}

func (h *pauses) deletePause(c *rest.Call) error {
	return c.ByID("pause", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		_, err := h.store.DeletePause(ctx, tenant, id)
		return nil, err
	})
}

var pausesParams = rest.Pages[rest.PageParams]()

// listPauses answers with a page of the pauses that stop the tenant's sending.
func (h *pauses) listPauses(c *rest.Call) error {
	return rest.List(c, &pausesParams, func(q rest.PageParams, after pause.Position) ([]pause.Pause, *pause.Position, error) {
		page, err := h.store.Pauses(c.Request.Context(), c.Caller.Tenant, after, q.Size)
		return page.Pauses, page.Next, err
	}, func(all []pause.Pause, next string) any {
		return pausesView{rest.ViewsOf(all, pauseViewOf), next}
	})
}

// TooMany is the problem of a tenant with the maximum number of pauses.
var TooMany = rest.NewKind("too-many-pauses", 409, "Too many pauses", "The tenant has the maximum number of pauses of channels, categories and campaigns; end one first, or pause everything.")

// ProblemOf returns the problem for an error about pauses, or nil.
func ProblemOf(err error) rest.Problemer { return rest.PlainProblem(err, plainProblems) }

var plainProblems = []rest.Plain{
	rest.PlainOf(pause.ErrTooMany, TooMany, "the tenant has the maximum number of pauses; end one first, or pause everything"),
	rest.PlainOf(pause.ErrOperators, rest.Forbidden, "the operator made this pause; only the operator can end it"),
}
