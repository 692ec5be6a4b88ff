package push_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestRecipientKey pins keys: they are stored, and name locks that old and new programs share during an upgrade.
func TestRecipientKey(t *testing.T) {
	a, b := uuid.MustParse("00000000-0000-0000-0000-00000000000a"), uuid.MustParse("00000000-0000-0000-0000-00000000000b")
	if got, want := push.RecipientKey(a, "anna"), int64(-8937435999914826808); got != want {
		t.Errorf("the key of anna is %d, was %d", got, want)
	}
	seen := map[int64]string{}
	for _, tenant := range []uuid.UUID{a, b} {
		for _, recipient := range []string{"anna", "bert", "Anna", "anna ", "ann", "a"} {
			key := push.RecipientKey(tenant, recipient)
			if other, taken := seen[key]; taken {
				t.Errorf("%s and %s share the key %d", recipient, other, key)
			}
			seen[key] = recipient
		}
	}
}
