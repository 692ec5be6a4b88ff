package pushes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestIdempotencyKey_SameRequestConcurrent checks that concurrent copies of one request make one push, and that every
// caller gets it.
func TestIdempotencyKey_SameRequestConcurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var drafts []booking.Draft
	for range 64 {
		drafts = append(drafts, storetest.MustKeyed(b.TenantID, "anna", "key", "body", time.Hour))
	}
	decisions := b.crowd(t, storetest.ThreeRules, drafts...)
	if n := storetest.Outcomes(decisions); n[booking.Booked] != 1 || n[booking.Replayed] != 63 {
		t.Errorf("decisions %v", n)
	}
	i := slices.IndexFunc(decisions, func(v booking.Decision) bool { return v.Outcome == booking.Booked })
	first := b.MustRead(t, decisions[i].Push)
	for _, v := range decisions {
		if diff := cmp.Diff(first, v.Push, cmpopts.IgnoreFields(push.Push{}, "CreatedAt", "UpdatedAt", "Metadata", "Sends", "RequestMember"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("a caller got another push:\n%s", diff)
		}
	}
}

// TestIdempotencyKey_OtherRequestsConcurrent checks that one of many concurrent requests under a key is booked. They
// share neither a recipient nor an id, like a single push and the members of batches.
func TestIdempotencyKey_OtherRequestsConcurrent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var drafts []booking.Draft
	for i := range 64 {
		name := string(rune('A' + i))
		d := storetest.MustKeyed(b.TenantID, name, "key", "body of "+name, time.Hour)
		d.Push.RequestMember = uuid.New()
		drafts = append(drafts, d)
	}
	if n := storetest.Outcomes(b.crowd(t, storetest.ThreeRules, drafts...)); n[booking.Booked] != 1 || n[booking.KeyReused] != 63 {
		t.Errorf("decisions %v", n)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestIdempotencyKey follows one key through its life.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := func(d booking.Draft, want booking.Outcome) booking.Decision {
		t.Helper()
		v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d)
		if v.Outcome != want {
			t.Fatalf("outcome %d, want %d: %+v", v.Outcome, want, v)
		}
		return v
	}
	blocker := b.Booked(t, "anna", time.Hour)

	// A refusal stores nothing: the same request may find a free time later.
	want(storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), booking.NoPlace)
	if _, err := b.Cancel(t.Context(), b.TenantID, blocker.ID); err != nil {
		t.Fatal(err)
	}
	first := want(storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), booking.Booked).Push

	want(storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), booking.Replayed)
	want(storetest.MustKeyed(b.TenantID, "anna", "k", "another body", time.Hour), booking.KeyReused)
	want(storetest.MustKeyed(b.TenantID, "bert", "k", "another body", time.Hour), booking.KeyReused)

	// The key outlives the end of its push, and dry runs.
	if v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour)}, Policy: storetest.ThreeRules, DryRun: true}); err != nil || v[0].Outcome != booking.Replayed {
		t.Errorf("dry run: %+v, %v", v, err)
	}
	if _, err := b.Cancel(t.Context(), b.TenantID, first.ID); err != nil {
		t.Fatal(err)
	}
	if v := want(storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), booking.Replayed); v.Push.Status != push.Canceled || v.Push.ID != first.ID {
		t.Errorf("%+v", v.Push)
	}

	// Another tenant with the same id learns nothing of the push.
	stolen := storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour)
	stolen.Push.Tenant = uuid.New()
	if v := want(stolen, booking.KeyReused); v.Push.ID != uuid.Nil {
		t.Errorf("%+v", v)
	}
}

// TestIdempotencyKey_OneRequest checks that a key belongs to one request, even if no member of the other request
// exists.
func TestIdempotencyKey_OneRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member := func(id, request string, in time.Duration) booking.Draft {
		d := storetest.MustKeyed(b.TenantID, "anna", "k", request, in)
		d.Push.RequestMember = uuid.NewSHA1(b.TenantID, []byte(id))
		return d
	}
	b.Booked(t, "anna", time.Hour)
	for _, step := range []struct {
		drafts []booking.Draft
		want   []booking.Outcome
	}{
		{[]booking.Draft{member("0", "first", time.Hour), member("1", "first", 2*time.Hour)}, []booking.Outcome{booking.NoPlace, booking.Booked}},
		{[]booking.Draft{member("0", "second", 3*time.Hour)}, []booking.Outcome{booking.KeyReused}},
		{[]booking.Draft{member("single", "third", 3*time.Hour)}, []booking.Outcome{booking.KeyReused}},
		{[]booking.Draft{member("0", "first", time.Hour), member("1", "first", 2*time.Hour)}, []booking.Outcome{booking.NoPlace, booking.Replayed}},
	} {
		decisions, err := b.Book(t.Context(), booking.Order{Drafts: step.drafts, Policy: storetest.ThreeRules})
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range decisions {
			if v.Outcome != step.want[i] {
				t.Errorf("%s, member %d: %d, want %d", step.drafts[i].Push.IdempotencyHash, i, v.Outcome, step.want[i])
			}
		}
	}
}

// TestIdempotencyKey_TwiceInOneTransaction checks that two drafts of one request in one order make one push.
func TestIdempotencyKey_TwiceInOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drafts := []booking.Draft{
		storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), storetest.MustKeyed(b.TenantID, "anna", "k", "body", time.Hour), storetest.MustKeyed(b.TenantID, "anna", "k2", "body", 2*time.Hour),
	}
	v, err := b.Book(t.Context(), booking.Order{Drafts: drafts, Policy: storetest.ThreeRules})
	if err != nil || v[0].Outcome != booking.Booked || v[1].Outcome != booking.Replayed || v[2].Outcome != booking.Booked {
		t.Fatalf("%+v, %v", v, err)
	}
	if v[1].Push.ID != v[0].Push.ID {
		t.Error("replayed another push")
	}
}

// TestIdempotencyKey_LockedUntilCommit checks that the later of two requests under one key at two processes waits until
// the first has committed.
func TestIdempotencyKey_LockedUntilCommit(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	first, second := storetest.MustKeyed(b.TenantID, "anna", "key", "body", time.Hour), storetest.MustKeyed(b.TenantID, "bert", "key", "another", time.Hour)
	second.Push.RequestMember = uuid.New()

	// The first waits, once it has its locks, for a table that the test has locked.
	b.Exec(t, `BEGIN`)
	b.Exec(t, `LOCK TABLE pushes IN SHARE MODE`) // other transactions can still read it
	other := storetest.OpenURL(t, b.URL, store.Config{})
	outcomes := make(chan booking.Outcome, 2)
	go func() { outcomes <- storetest.MustBook(t, b.Store, storetest.ThreeRules, first).Outcome }()
	b.Waiting(t, 1)
	go func() { outcomes <- storetest.MustBook(t, other, storetest.ThreeRules, second).Outcome }()
	b.Waiting(t, 2)
	b.Exec(t, `COMMIT`)
	if one, two := <-outcomes, <-outcomes; min(one, two) != booking.Booked || max(one, two) != booking.KeyReused {
		t.Errorf("outcomes %d and %d", one, two)
	}
}
