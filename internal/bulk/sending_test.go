package bulk_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// dueNow books a push that is due.
func (b *bundle) dueNow(t *testing.T, recipient string) uuid.UUID {
	t.Helper()
	return b.books(t, 1, func(int) (string, time.Duration) {
		return recipient, time.Now().Truncate(time.Second).Sub(b.at)
	})[0]
}

// claims claims a recipient's due push.
func (b *bundle) claims(t *testing.T, recipient string) booking.Claim {
	t.Helper()
	c, err := b.store.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, recipient), Lease: time.Minute})
	testenv.Check(t, err)
	return c
}

// ends ends an attempt: with a status, or with another try after a time.
func (b *bundle) ends(t *testing.T, c booking.Claim, status push.Status, delay time.Duration) {
	t.Helper()
	f := booking.Finish{Attempt: c.Attempted(), Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: status, Delay: delay}}
	if status == push.Sent {
		f.Outcome, f.Error = push.Delivered, ""
	}
	_, err := b.store.Finish(t.Context(), f)
	testenv.Check(t, err)
}

// TestRunner_Sending: a bulk cancel returns to pushes that are being sent. Those that the attempt does not send are canceled, by it
// or by the next claim, and not tried again. Others are canceled meanwhile.
func TestRunner_Sending(t *testing.T) {
	t.Parallel()
	b := setup(t)
	names := []string{"sent", "failed", "later", "at once", "lost", "moved"}
	ids, under := map[string]uuid.UUID{}, map[string]booking.Claim{}
	for _, name := range names {
		ids[name] = b.dueNow(t, name)
		if under[name] = b.claims(t, name); under[name].Outcome != booking.Claimed {
			t.Fatalf("%s: %+v", name, under[name])
		}
	}
	b.submit(t, "other", 0)
	p := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	b.passes(t, b.runner, -1)
	if p = b.read(t, p.ID); p.Status != bulkchange.Running || p.Found != 7 || p.Changed != 1 || p.Left() != 6 {
		t.Fatalf("while they are being sent: %+v", p)
	}
	b.ends(t, under["sent"], push.Sent, 0)
	b.ends(t, under["failed"], push.Failed, 0)
	b.ends(t, under["later"], push.Scheduled, time.Minute)
	b.ends(t, under["at once"], push.Scheduled, 0)
	if c := b.claims(t, "at once"); c.Outcome != booking.Withdrawn {
		t.Errorf("a second attempt: %+v", c)
	}
	b.ends(t, under["moved"], push.Scheduled, time.Minute)
	b.moveTo(t, ids["moved"], time.Hour)
	c := under["lost"]
	_, err := b.store.Finish(t.Context(), booking.Finish{Attempt: c.Attempted(), Outcome: push.Unknown, Reaped: true, Resolution: push.Resolution{Status: push.Scheduled}})
	testenv.Check(t, err)
	testenv.Until(t, 50*time.Millisecond, "the bulk cancel ends", func() bool {
		b.passes(t, b.runner, -1)
		return b.read(t, p.ID).Status == bulkchange.Done
	})
	if p = b.read(t, p.ID); p.Found != 7 || p.Changed != 5 || p.Refused[bulkchange.NotScheduled] != 2 {
		t.Errorf("%+v", p)
	}
	for name, want := range map[string]push.Status{"sent": push.Sent, "failed": push.Failed, "later": push.Canceled, "at once": push.Canceled, "lost": push.Canceled, "moved": push.Canceled} {
		if got := b.push(t, ids[name]); got.Status != want || len(got.Sends) != 1 {
			t.Errorf("%s is %s after %d attempts, want %s", name, got.Status, len(got.Sends), want)
		}
	}
}

// TestRunner_SendingStopped: a bulk cancel that waits for pushes that are being sent can be stopped.
func TestRunner_SendingStopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.dueNow(t, "anna")
	b.claims(t, "anna")
	p := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	b.passes(t, b.runner, -1)
	if _, err := b.CancelBulkChange(t.Context(), b.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	if p = b.run(t, p.ID); p.Status != bulkchange.Canceled || p.Found != 1 || p.Left() != 1 {
		t.Errorf("%+v", p)
	}
}
