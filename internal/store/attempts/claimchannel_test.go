package attempts_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// order claims for anna by an order that o completes.
func (b *bundle) order(t *testing.T, o booking.ClaimOrder) booking.Claim {
	t.Helper()
	o.RecipientKey, o.Lease = push.RecipientKey(b.TenantID, "anna"), time.Minute
	c, err := b.Claim(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// through books a push for anna through a channel.
func (b *bundle) through(t *testing.T, channel string, ago time.Duration) push.Push {
	t.Helper()
	d := storetest.Draft(b.TenantID, "anna", -ago)
	d.Push.Channel = channel
	return storetest.MustBook(t, b.Store, nil, d).Push
}

// TestClaim_ByChannel checks that a claim for any channel skips the channels that can take no push, and that a claim
// for one channel takes its push although older ones are due.
func TestClaim_ByChannel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	sms, mail, log := b.through(t, "sms", 3*time.Minute), b.through(t, "mail", 2*time.Minute), b.through(t, "log", time.Minute)
	both := []string{"fcm", "mail", "sms"}

	c := b.order(t, booking.ClaimOrder{Without: both})
	if c.Outcome != booking.Claimed || c.Push.ID != log.ID {
		t.Fatalf("%+v", c)
	}
	// While that attempt is under way, no other may begin; its worker reads again when it ends.
	if c := b.order(t, booking.ClaimOrder{Channel: "mail"}); c.Outcome != booking.Nothing {
		t.Fatalf("%+v", c)
	}
	if more := b.MustFinish(t, c, storetest.Sent); !more {
		t.Error("the push through the other channel is forgotten")
	}
	if c = b.order(t, booking.ClaimOrder{Without: both}); c.Outcome != booking.Nothing {
		t.Fatalf("%+v", c)
	}
	if c = b.order(t, booking.ClaimOrder{Channel: "fcm"}); c.Outcome != booking.Nothing {
		t.Fatalf("%+v", c)
	}
	if c = b.order(t, booking.ClaimOrder{Channel: "mail"}); c.Outcome != booking.Claimed || c.Push.ID != mail.ID {
		t.Fatalf("%+v", c)
	}
	if more := b.MustFinish(t, c, storetest.Sent); !more {
		t.Error("the push through a channel that was not asked for is forgotten")
	}
	if c = b.order(t, booking.ClaimOrder{}); c.Outcome != booking.Claimed || c.Push.ID != sms.ID {
		t.Fatalf("%+v", c)
	}
	if more := b.MustFinish(t, c, storetest.Sent); more {
		t.Error("nothing is due any more")
	}
	b.MustAudit(t, nil)
}

// TestClaim_TwoChannelsInOneGroup checks that the second of two claims in a group for one recipient and different
// channels does not report that nothing is due.
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
					b.MustFinish(t, c, storetest.Sent)
					sends++
				}
			}
		})
	}
	claimers.Wait()
	b.MustAudit(t, nil)
}
