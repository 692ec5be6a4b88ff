package store_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestCancelAt_Moved: a push that waits for another time by now is not canceled, and comes with the error.
func TestCancelAt_Moved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.at(t, b.Store, "anna", monday(1), nil).Push
	if err := b.move(b.Store, p, monday(2)); err != nil {
		t.Fatal(err)
	}
	if got, err := b.CancelAt(t.Context(), b.tenant, p.ID, monday(1)); !errors.Is(err, push.ErrMoved) || !got.SendAt.Equal(monday(2)) {
		t.Errorf("%s, %v", got.SendAt, err)
	}
	b.wantStatus(t, p, push.Scheduled)
	for range 2 { // the second one finds it canceled
		if got, err := b.CancelAt(t.Context(), b.tenant, p.ID, monday(2)); err != nil || got.Status != push.Canceled {
			t.Errorf("%s, %v", got.Status, err)
		}
	}
}

// TestCancelAt_Race: of a move and a cancel at the old time that meet, one alone is done.
func TestCancelAt_Race(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for i := range 100 {
		p := b.at(t, b.Store, fmt.Sprint("person-", i), monday(1), nil).Push
		var (
			moved, canceled error
			both            sync.WaitGroup
		)
		both.Go(func() { moved = b.move(b.Store, p, monday(1).Add(time.Minute)) })
		both.Go(func() { _, canceled = b.CancelAt(t.Context(), b.tenant, p.ID, monday(1)) })
		both.Wait()
		got := b.read(t, p)
		switch {
		case moved == nil && errors.Is(canceled, push.ErrMoved) && got.Status == push.Scheduled && got.SendAt.Equal(monday(1).Add(time.Minute)):
		case errors.Is(moved, push.ErrNotReschedulable) && canceled == nil && got.Status == push.Canceled && got.SendAt.Equal(monday(1)):
		default:
			t.Fatalf("the move: %v; the cancel: %v; it is %s at %s", moved, canceled, got.Status, got.SendAt)
		}
	}
}
