package console

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
)

// webhooksView is the list of webhooks, and one that was just made.
type webhooksView struct {
	Webhooks []client.Webhook
	Made     *client.Webhook // with its secret, which is shown this once
}

func showWebhooks(p *page) error {
	all, err := p.api.Webhooks.List(p.ctx())
	if err != nil {
		return err
	}
	return p.show("settingswebhooks", "Webhooks", &webhooksView{Webhooks: all.Webhooks})
}

func createWebhook(p *page) error {
	made := client.NewWebhook{URL: p.Field("url")}
	for _, event := range words(p.Field("events")) {
		made.Events = append(made.Events, client.NewWebhookEvents(event))
	}
	hook, failed := p.api.Webhooks.Create(p.ctx(), made)
	all, err := p.api.Webhooks.List(p.ctx())
	if err != nil {
		return err
	}
	if failed != nil {
		return p.again(atEvents(failed), "settingswebhooks", "Webhooks", &webhooksView{Webhooks: all.Webhooks})
	}
	p.r.PostForm = nil // the form is for another one
	return p.show("settingswebhooks", "Webhooks", &webhooksView{all.Webhooks, &hook})
}

// atEvents has what the API finds wrong with one of the events stand at the field that has all of them.
func atEvents(err error) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			if strings.HasPrefix(fieldOf(invalid.Errors[i].Location), "events[") {
				invalid.Errors[i].Location = "events"
			}
		}
	}
	return err
}

// webhookView is one webhook with what was sent to it.
type webhookView struct {
	client.Webhook
	Rotated    bool // Webhook has the new secret
	Deliveries client.Deliveries
	Statuses   []client.DeliveryStatus
}

func readWebhook(p *page) (*webhookView, error) {
	id := p.param("id")
	view := &webhookView{Statuses: []client.DeliveryStatus{client.DeliveryStatusWaiting, client.DeliveryStatusSending, client.DeliveryStatusDelivered, client.DeliveryStatusFailed}}
	var err error
	if view.Webhook, err = p.api.Webhooks.Get(p.ctx(), id); err != nil {
		return view, err
	}
	query := url.Values{"page_size": {"50"}}
	for _, name := range []string{"status", "event", "push", "page_token"} {
		if v := p.Query(name); v != "" {
			query.Set(name, v)
		}
	}
	return view, p.api.Get(p.ctx(), "/v1/webhooks/"+pathPart(id)+"/deliveries", query, &view.Deliveries)
}

func showWebhook(p *page) error {
	view, err := readWebhook(p)
	switch {
	case err != nil && view.ID != "": // the filter is wrong
		return p.again(err, "settingswebhook", "Webhook", view)
	case err != nil:
		return err
	}
	return p.show("settingswebhook", "Webhook", view)
}

// actOnWebhook does one of the things that buttons of a webhook's page do.
func actOnWebhook(p *page) error {
	id, back := p.param("id"), p.Link("/settings/webhooks/"+p.param("id"))
	switch p.Field("do") {
	case "test":
		if _, err := p.api.Webhooks.Test(p.ctx(), id); err != nil {
			return err
		}
		return p.done("Test event sent. Reload this page to see the result.", back)
	case "enable":
		if _, err := p.api.Webhooks.Enable(p.ctx(), id); err != nil {
			return err
		}
		return p.done("Webhook enabled.", back)
	case "delete":
		if err := p.api.Webhooks.Delete(p.ctx(), id); err != nil {
			return err
		}
		return p.done("Webhook deleted.", p.Link("/settings/webhooks"))
	case "replay-failed":
		n, err := p.api.Webhooks.ReplayFailedDeliveries(p.ctx(), id, client.SinceForm{Since: p.Now().Add(-replayTime)})
		if err != nil {
			return err
		}
		return p.done(replayed(n.Replayed), back)
	case "replay":
		if _, err := p.api.Webhooks.ReplayDelivery(p.ctx(), id, p.Field("delivery")); err != nil {
			return err
		}
		return p.done("Event queued to be sent again.", back)
	case "rotate":
		hook, err := p.api.Webhooks.RotateSecret(p.ctx(), id)
		if err != nil {
			return err
		}
		view, err := readWebhook(p)
		if err != nil {
			return err
		}
		view.Webhook, view.Rotated = hook, true
		return p.show("settingswebhook", "Webhook", view)
	}
	return p.redirect(back)
}

// replayed says how many events that had failed are sent again.
func replayed(n int64) string {
	switch n {
	case 0:
		return "Nothing to resend: no event failed permanently in the last seven days."
	case 1:
		return "1 failed event queued to be sent again."
	}
	return number(n) + " failed events queued to be sent again."
}

// replayTime is how far back events that have failed are sent again at once.
const replayTime = 7 * 24 * time.Hour
