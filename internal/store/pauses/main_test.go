package pauses_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// bundle is a [storetest.Bundle] with helpers for the tests of this package. It is alone: the workers' part of pauses is of all
// tenants.
type bundle struct{ *storetest.Bundle }

func setup(t testing.TB) *bundle { return &bundle{storetest.SetupAlone(t)} }

// pauses creates a pause of a tenant, or of the operator.
func (b *bundle) pauses(t testing.TB, p pause.Pause) pause.Pause {
	t.Helper()
	p.ID = uuid.Must(uuid.NewV7())
	made, _, err := b.CreatePause(t.Context(), p, pause.Given{Reason: true, Until: true})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// ends ends a pause.
func (b *bundle) ends(t testing.TB, p pause.Pause) {
	t.Helper()
	if _, err := b.DeletePause(t.Context(), p.Tenant, p.ID); err != nil {
		t.Fatal(err)
	}
}

// resumes does the workers' part of pauses until nothing is left, and returns the number of pushes that became due and expired.
func (b *bundle) resumes(t testing.TB) (due, expired int) {
	t.Helper()
	for more := true; more; {
		if _, err := b.EndPauses(t.Context()); err != nil {
			t.Fatal(err)
		}
		some, again, err := b.Unpark(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ended, late, err := b.ExpirePaused(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		due, expired, more = due+len(some), expired+len(ended), again || late
	}
	return due, expired
}
