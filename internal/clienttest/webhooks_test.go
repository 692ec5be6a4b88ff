package clienttest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestWebhooks goes the way of a webhook, with an endpoint that gives up on what it gets at first.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	broken, got := make(chan struct{}), make(chan http.Header, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-broken:
			got <- r.Header
		default:
			w.WriteHeader(http.StatusGone)
		}
	}))
	defer endpoint.Close()

	hook, err := c.Webhooks.Create(ctx, client.NewWebhook{URL: endpoint.URL, Events: []client.NewWebhookEvents{client.NewWebhookEventsPushCanceled}})
	if err != nil || hook.Secret == "" || hook.Status != client.WebhookStatusEnabled || hook.URL != endpoint.URL || !slices.Equal(hook.Events, []string{"push.canceled"}) {
		t.Fatalf("%+v, %v", hook, err)
	}
	rotated, err := c.Webhooks.RotateSecret(ctx, hook.ID)
	if err != nil || rotated.Secret == "" || rotated.Secret == hook.Secret {
		t.Errorf("%+v, %v", rotated, err)
	}

	// 410 disables it, and its event is given up.
	tested, err := c.Webhooks.Test(ctx, hook.ID)
	if err != nil || tested.Event != "webhook.test" {
		t.Fatalf("%+v, %v", tested, err)
	}
	testenv.Until(t, 10*time.Millisecond, "the webhook is disabled", func() bool {
		hook, err = c.Webhooks.Get(ctx, hook.ID)
		return err == nil && hook.Status == client.WebhookStatusDisabled && !hook.DisabledAt.IsZero()
	})
	var problem *client.Problem
	if _, err := c.Webhooks.Test(ctx, hook.ID); !errors.As(err, &problem) || problem.Name() != "webhook-disabled" {
		t.Error(err)
	}
	if hook, err = c.Webhooks.Enable(ctx, hook.ID); err != nil || hook.Status != client.WebhookStatusEnabled || hook.Failures != 0 {
		t.Errorf("%+v, %v", hook, err)
	}
	only := func(f client.WebhookDeliveriesOptions) (all []client.Delivery) {
		for d, err := range c.Webhooks.ListDeliveries(ctx, hook.ID, f) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, d)
		}
		return all
	}
	if all := only(client.WebhookDeliveriesOptions{Status: client.DeliveryStatusFailed, Event: "webhook.test"}); len(all) != 1 || all[0].ID != tested.ID || all[0].LastStatus != http.StatusGone || all[0].Payload["type"] != "webhook.test" {
		t.Errorf("%+v", all)
	}

	// It is sent again, twice.
	close(broken)
	if n, err := c.Webhooks.ReplayFailedDeliveries(ctx, hook.ID, client.SinceForm{Since: tested.CreatedAt.Add(-time.Minute)}); err != nil || n.Replayed != 1 {
		t.Errorf("%+v, %v", n, err)
	}
	if h := <-got; h.Get("Webhook-Id") != tested.ID {
		t.Errorf("%v", h)
	}
	testenv.Until(t, 10*time.Millisecond, "it is delivered", func() bool {
		return len(only(client.WebhookDeliveriesOptions{Status: client.DeliveryStatusDelivered})) == 1
	})
	if d, err := c.Webhooks.ReplayDelivery(ctx, hook.ID, tested.ID); err != nil || d.ID != tested.ID {
		t.Errorf("%+v, %v", d, err)
	}
	if h := <-got; h.Get("Webhook-Id") != tested.ID {
		t.Errorf("%v", h)
	}

	// Events of pushes are found by their push.
	push, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "webhooks", Message: client.Message{"title": "Hi"}, SendAt: inDays(50)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Pushes.Cancel(ctx, push.ID); err != nil {
		t.Fatal(err)
	}
	<-got
	if all := only(client.WebhookDeliveriesOptions{Push: push.ID}); len(all) != 1 || all[0].Event != "push.canceled" || all[0].PushID != push.ID {
		t.Errorf("%+v", all)
	}

	if all, err := c.Webhooks.List(ctx); err != nil || len(all.Webhooks) != 1 || all.Webhooks[0].ID != hook.ID || all.Webhooks[0].Secret != "" {
		t.Errorf("%+v, %v", all, err)
	}
	if err := c.Webhooks.Delete(ctx, hook.ID); err != nil {
		t.Error(err)
	}
	if _, err := c.Webhooks.Get(ctx, hook.ID); !errors.As(err, &problem) || problem.Name() != "not-found" {
		t.Error(err)
	}
}
