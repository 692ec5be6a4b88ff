package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
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
	{"url", required, text(func(f *webhookForm, s string) { f.url = s }, 1, 2048),
		"The endpoint that receives the events: https or http, at a public address, without user and password.", "https://example.com/hooks/sendquota"},
	{"events", optional, array(1, 0, event.describe, (*webhookForm).readEvent).unique(), "The events to send. Default: all.", nil},
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

func unchosen(name string, _ []byte, errs *fieldErrors) bool {
	if name != "secret" {
		return false
	}
	errs.add(name, "cannot be chosen: it is generated, and shown in the answer", nil)
	return true
}

func (a *api) createWebhook(c *call) error {
	f := webhookForm{events: push.Events, urlFault: a.cfg.Webhooks.URLFault}
	if err := webhookFields.readBody(c, &f, &c.bad); err != nil {
		return err
	}
	w, secret, err := a.cfg.Webhooks.Create(c.r.Context(), c.caller.Tenant, f.url, f.events)
	if err != nil {
		return err
	}
	v := webhookViewOf(w, secret)
	return a.created(c, webhooksPath+"/"+v.ID, false, v)
}

func (a *api) listWebhooks(c *call) error {
	hooks, err := a.cfg.Webhooks.Webhooks(c.r.Context(), c.caller.Tenant)
	if err != nil {
		return err
	}
	views := viewsOf(hooks, func(w push.Webhook) webhookView { return webhookViewOf(w, "") })
	return a.answer(c.w, http.StatusOK, webhooksView{views})
}

func (a *api) getWebhook(c *call) error {
	return a.byID(c, "webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := a.cfg.Webhooks.Webhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (a *api) deleteWebhook(c *call) error {
	return a.byID(c, "webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, a.cfg.Webhooks.DeleteWebhook(ctx, tenant, id)
	})
}

func (a *api) enableWebhook(c *call) error {
	return a.byID(c, "webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := a.cfg.Webhooks.EnableWebhook(ctx, tenant, id)
		return webhookViewOf(w, ""), err
	})
}

func (a *api) rotateSecret(c *call) error {
	return a.byID(c, "webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, secret, err := a.cfg.Webhooks.Rotate(ctx, tenant, id)
		return webhookViewOf(w, secret), err
	})
}

func (a *api) testWebhook(c *call) error {
	return a.byID(c, "webhook", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		d, err := a.cfg.Webhooks.Test(ctx, tenant, id)
		return deliveryViewOf(d), err
	})
}
