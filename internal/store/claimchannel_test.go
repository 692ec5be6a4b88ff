package store_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// order claims for anna, with what the test adds.
func (b *bundle) order(t *testing.T, o booking.ClaimOrder) booking.Claim {
	t.Helper()
	o.RecipientKey, o.Lease = push.RecipientKey(b.tenant, "anna"), time.Minute
	c, err := b.Claim(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// through books a push for anna through a channel.
func (b *bundle) through(t *testing.T, channel string, ago time.Duration) push.Push {
	t.Helper()
	d := draft(b.tenant, "anna", -ago)
	d.Push.Channel = channel
	return book(t, b.Store, nil, d).Push
}

// TestClaim_ByChannel: a claim for any channel leaves out and names the channels that can take no push. A claim for one
// channel takes its push although older ones are due.
func TestClaim_ByChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sms, mail, log := b.through(t, "sms", 3*time.Minute), b.through(t, "mail", 2*time.Minute), b.through(t, "log", time.Minute)
	both := []string{"fcm", "mail", "sms"}

	c := b.order(t, booking.ClaimOrder{Without: both})
	left := slices.Sorted(slices.Values(c.LeftOut))
	if c.Outcome != booking.Claimed || c.Push.ID != log.ID || !slices.Equal(left, []string{"mail", "sms"}) {
		t.Fatalf("%+v", c)
	}
	// While that attempt is under way, no other may begin; its worker looks again when it ends.
	if c := b.order(t, booking.ClaimOrder{Channel: "mail"}); c.Outcome != booking.Nothing {
		t.Fatalf("%+v", c)
	}
	if more := b.finish(t, c, sent); !more {
		t.Error("the push through the other channel is forgotten")
	}
	if c = b.order(t, booking.ClaimOrder{Without: both}); c.Outcome != booking.Nothing || len(c.LeftOut) != 2 {
		t.Fatalf("%+v", c)
	}
	if c = b.order(t, booking.ClaimOrder{Channel: "fcm"}); c.Outcome != booking.Nothing {
		t.Fatalf("%+v", c)
	}
	if c = b.order(t, booking.ClaimOrder{Channel: "mail"}); c.Outcome != booking.Claimed || c.Push.ID != mail.ID || len(c.LeftOut) != 0 {
		t.Fatalf("%+v", c)
	}
	b.finish(t, c, sent)
	if c = b.order(t, booking.ClaimOrder{}); c.Outcome != booking.Claimed || c.Push.ID != sms.ID {
		t.Fatalf("%+v", c)
	}
	b.finish(t, c, sent)
	b.audit(t, nil)
}

// TestClaim_TwoChannelsInOneGroup: of two claims for one recipient and different channels in a group, the second is not
// told that nothing is due.
func TestClaim_TwoChannelsInOneGroup(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 20 {
		b.through(t, []string{"sms", "log"}[i%2], time.Duration(i+1)*time.Minute)
	}
	var claimers sync.WaitGroup
	for _, o := range []booking.ClaimOrder{{Channel: "sms"}, {Without: []string{"sms"}}} {
		claimers.Go(func() {
			for sends := 0; sends < 10; {
				c := b.order(t, o)
				if c.Outcome == booking.Claimed {
					if channel := c.Push.Channel; (channel == "sms") != (o.Channel == "sms") {
						t.Errorf("claimed %s", channel)
					}
					b.finish(t, c, sent)
					sends++
				}
			}
		})
	}
	claimers.Wait()
	b.audit(t, nil)
}

// TestDue_Without: pushes of some sources are left out.
func TestDue_Without(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.through(t, "sms", 2*time.Minute)
	log := b.through(t, "log", time.Minute)
	due, err := b.Due(t.Context(), 10, 0, []push.TenantChannel{{Tenant: b.tenant, Channel: "sms"}, {Tenant: uuid.New(), Channel: "log"}})
	if err != nil || len(due) != 1 || due[0].Push != log.ID || due[0].Channel != "log" {
		t.Errorf("%+v, %v", due, err)
	}
}

// TestPromote_Without: pushes of some sources are left out if they are due, and armed if they will be due.
func TestPromote_Without(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.through(t, "sms", time.Minute)
	log, soon := b.through(t, "log", time.Minute), b.through(t, "sms", -time.Minute)
	b.exec(t, `UPDATE pushes SET next_at = clock_timestamp() + interval '1 minute' WHERE id = $1`, soon.ID) // however long the tests before took
	var armed []string
	_, err := b.Promote(t.Context(), 2*time.Minute, time.Minute, 10, []push.TenantChannel{{Tenant: b.tenant, Channel: "sms"}, {Tenant: uuid.New(), Channel: "log"}}, func(ws []push.WakeUp) error {
		for _, w := range ws {
			armed = append(armed, w.Push.String())
		}
		return nil
	})
	if want := []string{log.ID.String(), soon.ID.String()}; err != nil || !slices.Equal(armed, want) {
		t.Errorf("armed %v, %v; want %v", armed, err, want)
	}
}
