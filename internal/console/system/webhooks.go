package system

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// webhooksView is the list of webhooks, and one that was just made.
type webhooksView struct {
	Webhooks []client.Webhook
	Made     *client.Webhook // with its secret, which is shown this once
}

func showWebhooks(p *frame.Page) error {
	all, err := p.API.Webhooks.List(p.Context())
	if err != nil {
		return err
	}
	return p.Show("settingswebhooks", "Webhooks", &webhooksView{Webhooks: all.Webhooks})
}

func createWebhook(p *frame.Page) error {
	made := client.NewWebhook{URL: p.Field("url")}
	for _, event := range words(p.Field("events")) {
		made.Events = append(made.Events, client.NewWebhookEvents(event))
	}
	hook, failed := p.API.Webhooks.Create(p.Context(), made)
	all, err := p.API.Webhooks.List(p.Context())
	if err != nil {
		return err
	}
	if failed != nil {
		return p.ShowAgain(atEvents(failed), "settingswebhooks", "Webhooks", &webhooksView{Webhooks: all.Webhooks})
	}
	p.Request.PostForm = nil // the form is for another one
	return p.Show("settingswebhooks", "Webhooks", &webhooksView{all.Webhooks, &hook})
}

// atEvents has what the API finds wrong with one of the events stand at the field that has all of them.
func atEvents(err error) error {
	var invalid *client.Invalid
	if errors.As(err, &invalid) {
		for i := range invalid.Errors {
			if strings.HasPrefix(frame.FieldOf(invalid.Errors[i].Location), "events[") {
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

func readWebhook(p *frame.Page) (*webhookView, error) {
	id := p.Param("id")
	view := &webhookView{Statuses: []client.DeliveryStatus{client.DeliveryStatusWaiting, client.DeliveryStatusSending, client.DeliveryStatusDelivered, client.DeliveryStatusFailed}}
	var err error
	if view.Webhook, err = p.API.Webhooks.Get(p.Context(), id); err != nil {
		return view, err
	}
	query := url.Values{"page_size": {"50"}}
	for _, name := range []string{"status", "event", "push", "page_token"} {
		if v := p.Query(name); v != "" {
			query.Set(name, v)
		}
	}
	return view, p.API.Get(p.Context(), "/v1/webhooks/"+frame.PathPart(id)+"/deliveries", query, &view.Deliveries)
}

func showWebhook(p *frame.Page) error {
	view, err := readWebhook(p)
	switch {
	case err != nil && view.ID != "": // the filter is wrong
		return p.ShowAgain(err, "settingswebhook", "Webhook", view)
	case err != nil:
		return err
	}
	return p.Show("settingswebhook", "Webhook", view)
}

// actOnWebhook does one of the things that buttons of a webhook's page do.
func actOnWebhook(p *frame.Page) error {
	id, back := p.Param("id"), p.Link("/settings/webhooks/"+p.Param("id"))
	switch p.Field("do") {
	case "test":
		if _, err := p.API.Webhooks.Test(p.Context(), id); err != nil {
			return err
		}
		return p.Done("Test event sent. Reload this page to see the result.", back)
	case "enable":
		if _, err := p.API.Webhooks.Enable(p.Context(), id); err != nil {
			return err
		}
		return p.Done("Webhook enabled.", back)
	case "delete":
		if err := p.API.Webhooks.Delete(p.Context(), id); err != nil {
			return err
		}
		return p.Done("Webhook deleted.", p.Link("/settings/webhooks"))
	case "replay-failed":
		n, err := p.API.Webhooks.ReplayFailedDeliveries(p.Context(), id, client.SinceForm{Since: p.Now().Add(-replayTime)})
		if err != nil {
			return err
		}
		return p.Done(replayed(n.Replayed), back)
	case "replay":
		if _, err := p.API.Webhooks.ReplayDelivery(p.Context(), id, p.Field("delivery")); err != nil {
			return err
		}
		return p.Done("Event queued to be sent again.", back)
	case "rotate":
		hook, err := p.API.Webhooks.RotateSecret(p.Context(), id)
		if err != nil {
			return err
		}
		view, err := readWebhook(p)
		if err != nil {
			return err
		}
		view.Webhook, view.Rotated = hook, true
		return p.Show("settingswebhook", "Webhook", view)
	}
	return p.Redirect(back)
}

// replayed describes the number of failed events that are sent again.
func replayed(n int64) string {
	switch n {
	case 0:
		return "Nothing to resend: no event failed permanently in the last seven days."
	case 1:
		return "1 failed event queued to be sent again."
	}
	return frame.Number(n) + " failed events queued to be sent again."
}

// replayTime is the period of failed events that are sent again together.
const replayTime = 7 * 24 * time.Hour
