package attempts_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// claimOrders returns claim orders for recipients, with a lease of a minute.
func (b *bundle) claimOrders(policy quota.Policy, recipients ...string) (orders []booking.ClaimOrder) {
	for _, r := range recipients {
		orders = append(orders, booking.ClaimOrder{RecipientKey: push.RecipientKey(b.TenantID, r), Policy: policy, Lease: time.Minute})
	}
	return orders
}

// TestClaimAll checks that each recipient gets the result of a claim of its own, in the order of the recipients.
func TestClaimAll(t *testing.T) {
	t.Parallel()
	g := storetest.Gather(t, setup(t).Bundle)
	anna, bert := g.Booked(t, "anna", -time.Minute), g.Booked(t, "bert", -time.Minute)
	g.InStatus(t, "carl", push.Sending)
	g.Booked(t, "dora", time.Hour)
	late := g.Booked(t, "emil", -time.Hour)
	g.Exec(t, `UPDATE pushes SET expires_at = clock_timestamp() WHERE id = $1`, late.ID)
	g.Booked(t, "frida", -time.Minute)
	g.Attempted(t, g.TenantID, "frida", push.Delivered, time.Second, 0)
	g.Sizes = nil

	claims, err := g.ClaimAll(t.Context(), (&bundle{g.Bundle}).claimOrders(storetest.ThreeRules, "bert", "carl", "anna", "dora", "nobody", "emil", "frida"))
	want := []booking.ClaimOutcome{booking.Claimed, booking.Nothing, booking.Claimed, booking.Nothing, booking.Nothing, booking.TooLate, booking.PutOff}
	if err != nil || len(claims) != len(want) {
		t.Fatalf("%+v, %v", claims, err)
	}
	for i, c := range claims {
		if c.Outcome != want[i] {
			t.Errorf("claim %d: %+v", i, c)
		}
	}
	if claims[0].Push.ID != bert.ID || claims[2].Push.ID != anna.ID || claims[0].Token == claims[2].Token || claims[0].Token == uuid.Nil {
		t.Errorf("claimed %+v and %+v", claims[0], claims[2])
	}
	if len(g.Sizes) != 1 || g.Sizes[0] != 7 {
		t.Errorf("groups of %v, want one of 7", g.Sizes)
	}
	g.MustFinish(t, claims[0], storetest.Sent)
	g.MustFinish(t, claims[2], storetest.TryAgain)
	g.WantStatus(t, bert, push.Sent)
	g.WantStatus(t, anna, push.Scheduled)
}

// TestClaimAll_Nothing checks that a call without orders does nothing, and that a call with a canceled context claims
// nothing.
func TestClaimAll_Nothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	if claims, err := b.ClaimAll(t.Context(), nil); len(claims) != 0 || err != nil {
		t.Errorf("%+v, %v", claims, err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if claims, err := b.ClaimAll(gone, b.claimOrders(nil, "anna")); err == nil {
		t.Errorf("%+v", claims)
	}
	b.WantStatus(t, p, push.Scheduled)
}

// TestClaimAll_CallerStops checks that a claim that has begun is returned although the context of its caller is
// canceled: no other worker knows of the claim.
func TestClaimAll_CallerStops(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.Booked(t, "anna", 0)
	b.Exec(t, `BEGIN`)
	b.Exec(t, `SELECT FROM live WHERE push_id = $1 FOR UPDATE`, p.ID)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	claims := make(chan []booking.Claim, 1)
	go func() {
		c, err := b.ClaimAll(ctx, b.claimOrders(nil, "anna"))
		if err != nil {
			t.Error(err)
		}
		claims <- c
	}()
	b.Waiting(t, 1)
	stop()
	b.Exec(t, `COMMIT`)
	if c := <-claims; len(c) != 1 || c[0].Outcome != booking.Claimed {
		t.Errorf("%+v", c)
	}
}

// TestClaimAll_Locked checks that a claim for a recipient that another transaction has locked is to be repeated. The
// other claims are made at once.
func TestClaimAll_Locked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	anna, bert := b.Booked(t, "anna", 0), b.Booked(t, "bert", 0)
	b.Exec(t, `BEGIN`)
	b.Exec(t, `SELECT pg_advisory_xact_lock($1)`, push.RecipientKey(b.TenantID, "anna"))
	claims, err := b.ClaimAll(t.Context(), b.claimOrders(storetest.ThreeRules, "anna", "bert"))
	if err != nil || claims[0].Outcome != booking.Wait || claims[0].Wait != booking.LockWait || claims[1].Outcome != booking.Claimed || claims[1].Push.ID != bert.ID {
		t.Fatalf("%+v, %v", claims, err)
	}
	b.Exec(t, `COMMIT`)
	claims, err = b.ClaimAll(t.Context(), b.claimOrders(storetest.ThreeRules, "anna"))
	if err != nil || claims[0].Outcome != booking.Claimed || claims[0].Push.ID != anna.ID {
		t.Errorf("then %+v, %v", claims, err)
	}
}

// TestClaimAll_SameRecipients checks that each push goes to one worker if several claim for the same recipients at once,
// in any order, and that no worker waits for another.
func TestClaimAll_SameRecipients(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var (
		recipients []string
		mu         sync.Mutex
		attempts   = map[uuid.UUID]int{}
		waited     int
		claiming   sync.WaitGroup
	)
	for i := range 200 {
		recipients = append(recipients, fmt.Sprint("r", i))
		b.Booked(t, recipients[i], 0)
	}
	for worker := range 4 {
		st := storetest.OpenURL(t, b.URL, store.Config{})
		orders := b.claimOrders(storetest.ThreeRules, recipients...)
		claiming.Go(func() {
			for len(orders) > 0 {
				part := orders[:min(50, len(orders))]
				if worker%2 == 1 {
					part = orders[len(orders)-len(part):]
				}
				claims, err := st.ClaimAll(t.Context(), part)
				if err != nil {
					t.Error(err)
					return
				}
				var left []booking.ClaimOrder
				mu.Lock()
				for i, c := range claims {
					switch c.Outcome {
					case booking.Claimed:
						attempts[c.Push.ID]++
					case booking.Wait, booking.Again:
						waited++
						left = append(left, part[i])
					}
				}
				mu.Unlock()
				if worker%2 == 1 {
					orders = append(left, orders[:len(orders)-len(part)]...)
				} else {
					orders = append(left, orders[len(part):]...)
				}
			}
		})
	}
	claiming.Wait()
	for id, n := range attempts {
		if n != 1 {
			t.Errorf("%s was claimed %d times", id, n)
		}
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM live WHERE token IS NOT NULL AND tenant_id = $1`, b.TenantID); n != 200 || len(attempts) != 200 {
		t.Errorf("%d attempts of %d pushes", n, len(attempts))
	}
	t.Logf("%d claims were made again", waited)
	b.MustAudit(t, storetest.ThreeRules)
}
