package storetest

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/webhooks"
	"github.com/sendquota/sendquota/internal/webhook"
)

// Hook makes a webhook of the bundle's tenant that wants these events; none: all.
func (b *Bundle) Hook(t testing.TB, events ...webhook.Event) webhook.Webhook {
	t.Helper()
	if events == nil {
		events = webhook.Events
	}
	w, err := b.CreateWebhook(t.Context(), webhook.Webhook{ID: uuid.New(), Tenant: b.TenantID, URL: "https://example.com/hook", Events: events}, "whsec_c2VjcmV0", 100)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// EventsOf returns the events of a push that a webhook is to get, in order.
func (b *Bundle) EventsOf(t testing.TB, w webhook.Webhook, p push.Push) []string {
	t.Helper()
	rows, _ := b.Watch.Query(t.Context(), `SELECT event FROM webhook_deliveries WHERE webhook_id = $1 AND push_id = $2 ORDER BY seq`, w.ID, p.ID)
	events, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return events
}

// Never switches nothing off.
var Never = webhooks.DisableLimits{After: time.Hour, Failures: 1000}

// Outgoing takes what is due, of webhooks that may have two under way.
func (b *Bundle) Outgoing(t testing.TB) []webhooks.Outgoing {
	t.Helper()
	var all []webhooks.Outgoing
	for more := true; more; {
		var (
			claimed []webhooks.Outgoing
			err     error
		)
		claimed, more, err = b.ClaimDeliveries(t.Context(), webhooks.ClaimLimits{Webhooks: 10, PerWebhook: 2, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, claimed...)
	}
	return all
}

func (b *Bundle) Settle(t testing.TB, off webhooks.DisableLimits, settlements ...webhooks.Settlement) []webhook.Webhook {
	t.Helper()
	switchedOff, err := b.SettleDeliveries(t.Context(), settlements, off)
	if err != nil {
		t.Fatal(err)
	}
	return switchedOff
}

// Ended is an attempt that ended well, or is to be repeated after an hour.
func Ended(d webhooks.Outgoing, well bool) webhooks.Settlement {
	n := webhooks.Settlement{ID: d.ID, Webhook: d.Webhook, Attempt: d.Attempt, Delivered: well, Status: 200}
	if !well {
		n.Status, n.Error, n.Retry = 500, "no", time.Hour
	}
	return n
}

func (b *Bundle) Passes(t testing.TB, d time.Duration) {
	t.Helper()
	b.Exec(t, `UPDATE webhook_deliveries SET next_at = next_at - $1::interval, queued_at = queued_at - $1::interval, created_at = created_at - $1::interval`, d)
	b.Exec(t, `UPDATE webhooks SET failing_since = failing_since - $1::interval, old_secret_until = old_secret_until - $1::interval, deleted_at = deleted_at - $1::interval`, d)
}
