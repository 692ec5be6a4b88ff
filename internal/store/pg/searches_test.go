package pg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestStatements_SearchesOfMany checks that statements for many pushes of many recipients search an index a few times for each of
// them, and not once for each of them and each of their shards.
func TestStatements_SearchesOfMany(t *testing.T) {
	t.Parallel()
	const many = 60
	b := setupNew(t)
	var (
		drafts  []booking.Draft
		orders  []booking.ClaimOrder
		claimed []booking.Claim
	)
	for i := range many {
		recipient := fmt.Sprint("recipient ", i)
		drafts = append(drafts, storetest.Draft(b.TenantID, recipient, 0))
		orders = append(orders, booking.ClaimOrder{RecipientKey: push.RecipientKey(b.TenantID, recipient), Policy: storetest.ThreeRules, Lease: time.Minute})
	}
	for _, part := range []struct {
		name string
		most int // searches for a push
		work func() error
	}{
		{"book", 3, func() error {
			_, err := b.Book(t.Context(), booking.Order{Drafts: drafts, Policy: storetest.ThreeRules})
			return err
		}},
		{"claim", 6, func() (err error) { claimed, err = b.ClaimAll(t.Context(), orders); return err }},
		{"finish", 3, func() error {
			done := make(chan error, many)
			for _, c := range claimed {
				go func() {
					_, err := b.Finish(t.Context(), booking.Finish{Attempt: c.Attempted(), Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}})
					done <- err
				}()
			}
			for range claimed {
				if err := <-done; err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		n := b.Counted(t, store.Config{}, `SELECT coalesce(sum(idx_scan), 0)::int FROM pg_stat_user_indexes WHERE relname ~ '^(pushes|live|sends)'`, func() {
			if err := part.work(); err != nil {
				t.Fatal(err)
			}
		})
		t.Logf("%s: %d searches for %d pushes", part.name, n, many)
		if n > part.most*many {
			t.Errorf("%s: %d searches for %d pushes, want %d at most", part.name, n, many, part.most*many)
		}
	}
}
