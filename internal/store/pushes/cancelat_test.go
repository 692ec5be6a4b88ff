package pushes_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestCancelAt_Moved checks that a push that was moved meanwhile is not canceled, and is returned with the error.
func TestCancelAt_Moved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.At(t, b.Store, "anna", storetest.Monday(1), nil).Push
	if err := b.Move(b.Store, p, storetest.Monday(2)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.CancelAt(t.Context(), b.TenantID, p.ID, storetest.Monday(1)); !errors.Is(err, push.ErrMoved) || !got.SendAt.Equal(storetest.Monday(2)) {
		t.Errorf("%s, %v", got.SendAt, err)
	}
	b.WantStatus(t, p, push.Scheduled)
	for range 2 { // the second one finds it canceled
		if got, err := b.CancelAt(t.Context(), b.TenantID, p.ID, storetest.Monday(2)); err != nil || got.Status != push.Canceled {
			t.Errorf("%s, %v", got.Status, err)
		}
	}
}

// TestCancelAt_Race checks that only one of a move and a concurrent cancel at the old time succeeds.
func TestCancelAt_Race(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 100 {
		p := b.At(t, b.Store, fmt.Sprint("person-", i), storetest.Monday(1), nil).Push
		var (
			moved, canceled error
			both            sync.WaitGroup
		)
		both.Go(func() { moved = b.Move(b.Store, p, storetest.Monday(1).Add(time.Minute)) })
		both.Go(func() { _, canceled = b.CancelAt(t.Context(), b.TenantID, p.ID, storetest.Monday(1)) })
		both.Wait()
		got := b.MustRead(t, p)
		switch {
		case moved == nil && errors.Is(canceled, push.ErrMoved) && got.Status == push.Scheduled && got.SendAt.Equal(storetest.Monday(1).Add(time.Minute)):
		case errors.Is(moved, push.ErrNotReschedulable) && canceled == nil && got.Status == push.Canceled && got.SendAt.Equal(storetest.Monday(1)):
		default:
			t.Fatalf("the move: %v; the cancel: %v; it is %s at %s", moved, canceled, got.Status, got.SendAt)
		}
	}
}
