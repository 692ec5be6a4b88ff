// Package webhooks has the operations of the REST API on webhooks and their deliveries.
package webhooks

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/webhook"
)

// The group of these operations in the documentation.
const Tag = "Webhooks"

// webhooks serves webhooks and their deliveries.
type webhooks struct{ svc *notify.Webhooks }

// Operations returns the operations on webhooks.
func Operations(s *rest.Spec, svc *notify.Webhooks) []rest.Operation {
	h := &webhooks{svc}
	return slices.Concat(h.routes(s), h.deliveryRoutes(s))
}

// Path is the path of the webhooks.
const Path = "/v1/webhooks"

// webhookView is a webhook as the API shows it.
type webhookView struct {
	ID             string          `json:"id" format:"uuid"`
	URL            string          `json:"url"`
	Events         []webhook.Event `json:"events"`
	Status         string          `json:"status" enum:"enabled,disabled" doc:"A disabled webhook gets no events: its endpoint failed for too long, or answered 410 Gone."`
	DisabledAt     *string         `json:"disabled_at" format:"date-time" nullable:"true"`
	DisabledReason string          `json:"disabled_reason,omitempty"`
	Failures       int             `json:"failures" doc:"Failed attempts since the last success."`
	FailingSince   *string         `json:"failing_since" format:"date-time" nullable:"true" doc:"The time of the first failed attempt since then."`
	CreatedAt      string          `json:"created_at" format:"date-time"`
	Secret         string          `json:"secret,omitempty" doc:"The secret that verifies the signatures of Standard Webhooks. Returned only when a webhook is created or its secret replaced: store it."`
}

type webhooksView struct {
	Webhooks []webhookView `json:"webhooks" doc:"The oldest first."`
}

// webhookViewOf shows a webhook, with its secret if that is new.
func webhookViewOf(w webhook.Webhook, secret string) webhookView {
	v := webhookView{
		ID: w.ID.String(), URL: w.URL, Events: w.Events, Status: "enabled", DisabledAt: rest.MaybeTime(w.DisabledAt), DisabledReason: w.DisabledReason,
		Failures: w.Failures, FailingSince: rest.MaybeTime(w.FailingSince), CreatedAt: rest.Stamp(w.CreatedAt), Secret: secret,
	}
	if v.DisabledAt != nil {
		v.Status = "disabled"
	}
	return v
}

// webhookForm is a webhook in a request.
type webhookForm struct {
	url      string
	urlFault func(url string) string
	events   []webhook.Event
}

var webhookFields = rest.Table[webhookForm]{SchemaName: "NewWebhook", Refuse: rest.Unchosen, Check: (*webhookForm).check, Fields: []rest.Field[webhookForm]{
	rest.Row("url", rest.Required, rest.Text(func(f *webhookForm, s string) { f.url = s }, 1, 2048),
		"The endpoint that receives the events: https or http, at a public address, without user and password.", "https://example.com/hooks/sendquota"),
	rest.Row("events", rest.Optional, rest.Array(1, 0, event.Describe, (*webhookForm).readEvent).Unique(), "The events to send. Default: all.", nil),
}}

// event is one of a webhook's events.
var event = rest.OneOf(func(to *webhook.Event, e webhook.Event) { *to = e }, webhook.Events...)

func (f *webhookForm) readEvent(r *rest.Reader, i int, name string, errs *rest.FieldErrors) {
	var e webhook.Event
	raw := r.Value()
	if r.Err != nil {
		return
	}
	if wrong := event.ReadJSON(raw, &e, "", nil); wrong != "" {
		errs.AddJSON(rest.Item(name, i), wrong, raw)
	} else if slices.Contains(f.events[:i], e) {
		errs.AddJSON(name, "must not name an event twice", raw)
	}
	f.events = append(f.events[:i:i], e) // the slice may be shared by all webhooks
}

// check rejects a URL that cannot receive events.
func (f *webhookForm) check(errs *rest.FieldErrors) {
	if f.url == "" || errs.Has("url") {
		return
	}
	if wrong := f.urlFault(f.url); wrong != "" {
		errs.Add("url", wrong, rest.Shown(f.url))
	}
}

func (h *webhooks) createWebhook(c *rest.Call) error {
	f := webhookForm{events: webhook.Events, urlFault: h.svc.URLFault}
	if err := webhookFields.ReadBody(c, &f, &c.Errors); err != nil {
		return err
	}
	w, secret, err := h.svc.Create(c.Request.Context(), c.Caller.Tenant, f.url, f.events)
	if err != nil {
		return err
	}
	v := webhookViewOf(w, secret)
	return c.Created(Path+"/"+v.ID, false, v)
}

func (h *webhooks) listWebhooks(c *rest.Call) error {
	hooks, err := h.svc.Webhooks(c.Request.Context(), c.Caller.Tenant)
	if err != nil {
		return err
	}
	views := rest.ViewsOf(hooks, func(w webhook.Webhook) webhookView { return webhookViewOf(w, "") })
	return c.Answer(http.StatusOK, webhooksView{views})
}

func (h *webhooks) getWebhook(c *rest.Call) error {
	return c.ByID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := h.svc.Webhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (h *webhooks) deleteWebhook(c *rest.Call) error {
	return c.ByID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteWebhook(ctx, tenant, id)
	})
}

func (h *webhooks) enableWebhook(c *rest.Call) error {
	return c.ByID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := h.svc.EnableWebhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (h *webhooks) rotateSecret(c *rest.Call) error {
	return c.ByID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, secret, err := h.svc.Rotate(ctx, tenant, id)
		return webhookViewOf(w, secret), err
	})
}

func (h *webhooks) testWebhook(c *rest.Call) error {
	return c.ByID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		d, err := h.svc.Test(ctx, tenant, id)
		return deliveryViewOf(d), err
	})
}

// The problems with webhooks. Clients know them by their names.
var (
	TooMany       = rest.NewKind("too-many-webhooks", 409, "Too many webhooks", "The tenant has the maximum number of webhooks; delete one first.")
	Disabled      = rest.NewKind("webhook-disabled", 409, "Webhook disabled", "The webhook is disabled; enable it first.")
	NotConfigured = rest.NewKind("not-configured", 422, "Not configured", "The installation lacks a setting that the operation needs; detail names it. Only the operator can set it. Until then, repeating the request does not help.")
)

// ProblemOf returns the problem for an error about webhooks, or nil.
func ProblemOf(err error) rest.Problemer { return rest.PlainProblem(err, plainWebhookProblems) }

var plainWebhookProblems = []rest.Plain{
	rest.PlainOf(webhook.ErrTooMany, TooMany, "the tenant has the maximum number of webhooks; delete one first"),
	rest.PlainOf(webhook.ErrOff, Disabled, "the webhook is disabled; enable it first"),
	rest.PlainOf(seal.ErrNoKey, NotConfigured, "secrets of webhooks cannot be sealed; the operator of this installation has to set "+seal.KeyVariable),
	rest.PlainOf(seal.ErrUnknownKey, NotConfigured, "the secret cannot be sealed: other programs of this installation have another "+seal.KeyVariable+"; the operator has to set the same key for all, with the other one as "+seal.PreviousVariable),
	rest.PlainOf(seal.ErrOtherKey, NotConfigured, "the secret of this webhook is sealed with another key; the operator of this installation has to set "+seal.PreviousVariable),
}
