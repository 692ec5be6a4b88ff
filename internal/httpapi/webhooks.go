package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/seal"
)

const webhooksPath = "/v1/webhooks"

// webhookView is a webhook as the API shows it.
type webhookView struct {
	ID             string       `json:"id" format:"uuid"`
	URL            string       `json:"url"`
	Events         []push.Event `json:"events"`
	Status         string       `json:"status" enum:"enabled,disabled" doc:"A disabled webhook gets no events: its endpoint failed for too long, or answered 410 Gone."`
	DisabledAt     *string      `json:"disabled_at" format:"date-time" nullable:"true"`
	DisabledReason string       `json:"disabled_reason,omitempty"`
	Failures       int          `json:"failures" doc:"Failed attempts since the last success."`
	FailingSince   *string      `json:"failing_since" format:"date-time" nullable:"true" doc:"The time of the first failed attempt since then."`
	CreatedAt      string       `json:"created_at" format:"date-time"`
	Secret         string       `json:"secret,omitempty" doc:"The secret that verifies the signatures of Standard Webhooks. Returned only when a webhook is created or its secret replaced: store it."`
}

type webhooksView struct {
	Webhooks []webhookView `json:"webhooks" doc:"The oldest first."`
}

// webhookViewOf shows a webhook, with its secret if that is new.
func webhookViewOf(w push.Webhook, secret string) webhookView {
	v := webhookView{
		ID: w.ID.String(), URL: w.URL, Events: w.Events, Status: "enabled", DisabledAt: maybe(w.DisabledAt), DisabledReason: w.DisabledReason,
		Failures: w.Failures, FailingSince: maybe(w.FailingSince), CreatedAt: stamp(w.CreatedAt), Secret: secret,
	}
	if v.DisabledAt != nil {
		v.Status = "disabled"
	}
	return v
}

// webhookForm is a webhook as a caller asks for it.
type webhookForm struct {
	url      string
	urlFault func(url string) string
	events   []push.Event
}

var webhookFields = table[webhookForm]{schemaName: "NewWebhook", refuse: unchosen, check: (*webhookForm).check, fields: []field[webhookForm]{
	row("url", required, text(func(f *webhookForm, s string) { f.url = s }, 1, 2048),
		"The endpoint that receives the events: https or http, at a public address, without user and password.", "https://example.com/hooks/sendquota"),
	row("events", optional, array(1, 0, event.describe, (*webhookForm).readEvent).unique(), "The events to send. Default: all.", nil),
}}

// event is one of a webhook's events.
var event = oneOf(func(to *push.Event, e push.Event) { *to = e }, push.Events...)

func (f *webhookForm) readEvent(r *reader, i int, name string, errs *fieldErrors) {
	var e push.Event
	raw := r.value()
	if r.err != nil {
		return
	}
	if wrong := event.readJSON(raw, &e, "", nil); wrong != "" {
		errs.addJSON(item(name, i), wrong, raw)
	} else if slices.Contains(f.events[:i], e) {
		errs.addJSON(name, "must not name an event twice", raw)
	}
	f.events = append(f.events[:i:i], e) // which may be those of all
}

// check refuses a URL that events are not sent to.
func (f *webhookForm) check(_ []byte, errs *fieldErrors) {
	if f.url == "" || errs.has("url") {
		return
	}
	if wrong := f.urlFault(f.url); wrong != "" {
		errs.add("url", wrong, shown(f.url))
	}
}

func (h *webhooks) createWebhook(c *call) error {
	f := webhookForm{events: push.Events, urlFault: h.svc.URLFault}
	if err := webhookFields.readBody(c, &f, &c.bad); err != nil {
		return err
	}
	w, secret, err := h.svc.Create(c.r.Context(), c.caller.Tenant, f.url, f.events)
	if err != nil {
		return err
	}
	v := webhookViewOf(w, secret)
	return c.created(webhooksPath+"/"+v.ID, false, v)
}

func (h *webhooks) listWebhooks(c *call) error {
	hooks, err := h.svc.Webhooks(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	views := viewsOf(hooks, func(w push.Webhook) webhookView { return webhookViewOf(w, "") })
	return c.answer(http.StatusOK, webhooksView{views})
}

func (h *webhooks) getWebhook(c *call) error {
	return c.byID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := h.svc.Webhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (h *webhooks) deleteWebhook(c *call) error {
	return c.byID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.svc.DeleteWebhook(ctx, tenant, id)
	})
}

func (h *webhooks) enableWebhook(c *call) error {
	return c.byID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := h.svc.EnableWebhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (h *webhooks) rotateSecret(c *call) error {
	return c.byID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, secret, err := h.svc.Rotate(ctx, tenant, id)
		return webhookViewOf(w, secret), err
	})
}

func (h *webhooks) testWebhook(c *call) error {
	return c.byID("webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		d, err := h.svc.Test(ctx, tenant, id)
		return deliveryViewOf(d), err
	})
}

// The problems with webhooks. Clients know them by their names.
var (
	tooManyWebhooks = newKind("too-many-webhooks", 409, "Too many webhooks", "The tenant has the maximum number of webhooks; delete one first.")
	webhookDisabled = newKind("webhook-disabled", 409, "Webhook disabled", "The webhook is disabled; enable it first.")
	notConfigured   = newKind("not-configured", 422, "Not configured", "The installation lacks a setting that the operation needs; detail names it. Only the operator can set it. Until then, repeating the request does not help.")
)

// webhookProblemOf returns the problem for an error about webhooks, or nil.
func webhookProblemOf(err error) problemer { return plainProblem(err, plainWebhookProblems) }

var plainWebhookProblems = []plain{
	plainOf(push.ErrTooManyWebhooks, tooManyWebhooks, "the tenant has the maximum number of webhooks; delete one first"),
	plainOf(push.ErrWebhookOff, webhookDisabled, "the webhook is disabled; enable it first"),
	plainOf(seal.ErrNoKey, notConfigured, "secrets of webhooks cannot be sealed; the operator of this installation has to set "+seal.KeyVariable),
	plainOf(seal.ErrOtherKey, notConfigured, "the secret of this webhook is sealed with another key; the operator of this installation has to set "+seal.PreviousVariable),
}
