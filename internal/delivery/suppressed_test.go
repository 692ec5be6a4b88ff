package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/suppression"
)

// TestWorker_Suppresses checks that a provider's answer that an address is not to be used any more suppresses it: the recipient's other
// push is canceled. An answer about the message or the moment suppresses nothing.
func TestWorker_Suppresses(t *testing.T) {
	t.Parallel()
	answers := map[string]channel.Result{
		"gone":    {Outcome: push.Refused, Final: true, OneAddress: true, Unregistered: true, Error: "unregistered: x"},
		"stopped": {Outcome: push.Refused, Final: true, OneAddress: true, Stopped: true, Error: "x"},
		"full":    {Outcome: push.Refused, Final: true, OneAddress: true, Error: "x"},
		"busy":    {Outcome: push.Refused, Error: "x"},
		"fine":    {Outcome: push.Delivered},
	}
	b := setup(t, nil)
	b.provider.answer = func(_ context.Context, p push.Push, _ int) channel.Result { return answers[p.Recipient] }
	set, err := channel.NewSet(channel.Entry{Name: "log", Channel: b.provider, Retry: retry, Gone: suppression.HardBounce})
	if err != nil {
		t.Fatal(err)
	}
	w := delivery.New(b.store, b.cache, set, b.waker, quiet, b.metrics, delivery.Config{Lease: 20 * time.Second, Concurrency: 2, Suppress: func(ctx context.Context, e suppression.Entry) error {
		_, _, err := b.store.PutSuppressions(ctx, e.Tenant, []suppression.Entry{e}, false)
		return err
	}})
	t.Cleanup(func() { closeWorker(t, w) })
	due, later := map[string]push.Push{}, map[string]push.Push{}
	for recipient := range answers {
		for at, of := range map[time.Time]map[string]push.Push{thisSecond().Add(-time.Second): due, thisSecond().Add(time.Hour): later} {
			p := push.Push{
				Content: push.Content{Recipient: recipient, Channel: "log", To: recipient + "@example.com", Message: []byte(`{}`)},
				ID:      push.NewID(at, push.RecipientKey(b.tenant, recipient)), Tenant: b.tenant, RequestedSendAt: at, SendAt: at, TTL: time.Hour,
			}
			if made, err := b.store.Book(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}}); err != nil || made[0].Outcome != booking.Booked {
				t.Fatal(made, err)
			}
			of[recipient] = p
		}
	}
	handle(t, w)
	want := map[string]suppression.Reason{"gone": suppression.HardBounce, "stopped": suppression.Stop}
	page, err := b.store.Suppressions(t.Context(), b.tenant, suppression.Filter{}, suppression.Position{}, 10)
	if err != nil || len(page.Entries) != len(want) {
		t.Errorf("%+v, %v", page, err)
	}
	for _, e := range page.Entries {
		recipient := e.Address[:len(e.Address)-len("@example.com")]
		if e.Reason != want[recipient] || e.Push != due[recipient].ID || e.Channel != "log" {
			t.Errorf("%+v", e)
		}
	}
	for recipient, p := range later {
		status := push.Scheduled
		if want[recipient] != "" {
			status = push.Canceled
		}
		if got := b.read(t, p.ID); got.Status != status {
			t.Errorf("the later push of %s is %s, want %s", recipient, got.Status, status)
		}
	}
	if p := b.read(t, due["gone"].ID); p.Status != push.Failed || p.LastError != "unregistered: x" {
		t.Errorf("%+v", p)
	}
	b.audit(t, nil)
}
