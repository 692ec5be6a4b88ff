package pushes_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestPush_OfAnother checks that Postgres gets the same statements for a push of another tenant as for a push that does
// not exist.
func TestPush_OfAnother(t *testing.T) {
	t.Parallel()
	b := setup(t)
	theirs := b.Booked(t, "anna", time.Hour)
	none := theirs.ID
	none[1]++ // of the same week and shard
	own, err := b.AskedForPush(t.Context(), b.TenantID, theirs.ID)
	if err != nil || len(own) != 1 {
		t.Errorf("one's own: %d statements, %v", len(own), err)
	}
	asked, err := b.AskedForPush(t.Context(), b.TenantID, none)
	if !errors.Is(err, push.ErrNotFound) || len(asked) != 2 {
		t.Errorf("one that there is not: %d statements, %v", len(asked), err)
	}
	got, err := b.AskedForPush(t.Context(), uuid.New(), theirs.ID)
	if !errors.Is(err, push.ErrNotFound) || !slices.Equal(got, asked) {
		t.Errorf("another tenant's: %v\n%q, want\n%q", err, got, asked)
	}
}
