package store_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// keyed is a draft under an Idempotency-Key: its id follows from the key.
func keyed(tenant uuid.UUID, recipient, key, request string, in time.Duration) store.Draft {
	d := draft(tenant, recipient, in)
	d.Push.ID = uuid.NewSHA1(tenant, []byte(key))
	d.Push.IdempotencyID = uuid.NewSHA1(tenant, []byte("key "+key))
	d.Push.IdempotencyHash = []byte(request)
	return d
}

// TestTheSameKeyManyTimesAtOnce makes one push, and everybody gets it.
func TestTheSameKeyManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var drafts []store.Draft
	for range 64 {
		drafts = append(drafts, keyed(b.tenant, "anna", "key", "body", time.Hour))
	}
	decisions := b.crowd(t, threeRules, drafts...)
	if n := outcomes(decisions); n[store.Booked] != 1 || n[store.Replayed] != 63 {
		t.Errorf("decisions %v", n)
	}
	first := b.read(t, drafts[0].Push)
	for _, v := range decisions {
		if diff := cmp.Diff(first, v.Push, cmpopts.IgnoreFields(push.Push{}, "ArmedUntil", "CreatedAt", "UpdatedAt", "Metadata"), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("somebody got another push:\n%s", diff)
		}
	}
}

// TestOneKeyForManyRequestsAtOnce serves one of them. They share neither a
// recipient nor an id, as a single push and the members of batches do not.
func TestOneKeyForManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var drafts []store.Draft
	for i := range 64 {
		name := string(rune('A' + i))
		d := keyed(b.tenant, name, "key", "body of "+name, time.Hour)
		d.Push.ID = uuid.New()
		drafts = append(drafts, d)
	}
	if n := outcomes(b.crowd(t, threeRules, drafts...)); n[store.Booked] != 1 || n[store.KeyReused] != 63 {
		t.Errorf("decisions %v", n)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes`); n != 1 {
		t.Errorf("%d rows", n)
	}
}

// TestKeys tells of one key's life.
func TestKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := func(d store.Draft, want store.Outcome) store.Decision {
		t.Helper()
		v := book(t, b.Store, threeRules, d)
		if v.Outcome != want {
			t.Fatalf("outcome %d, want %d: %+v", v.Outcome, want, v)
		}
		return v
	}
	blocker := b.booked(t, "anna", time.Hour)

	// A refusal leaves nothing behind: the same request may find a place later.
	want(keyed(b.tenant, "anna", "k", "body", time.Hour), store.Refused)
	if _, err := b.Cancel(t.Context(), b.tenant, blocker.ID); err != nil {
		t.Fatal(err)
	}
	first := want(keyed(b.tenant, "anna", "k", "body", time.Hour), store.Booked).Push

	want(keyed(b.tenant, "anna", "k", "body", time.Hour), store.Replayed)
	want(keyed(b.tenant, "anna", "k", "another body", time.Hour), store.KeyReused)
	want(keyed(b.tenant, "bert", "k", "another body", time.Hour), store.KeyReused)

	// The key outlives its push's end, and dry runs.
	if v, err := b.Book(t.Context(), store.Order{Drafts: []store.Draft{keyed(b.tenant, "anna", "k", "body", time.Hour)}, Policy: threeRules, DryRun: true}); err != nil || v[0].Outcome != store.Replayed {
		t.Errorf("dry run: %+v, %v", v, err)
	}
	if _, err := b.Cancel(t.Context(), b.tenant, first.ID); err != nil {
		t.Fatal(err)
	}
	if v := want(keyed(b.tenant, "anna", "k", "body", time.Hour), store.Replayed); v.Push.Status != push.Canceled || v.Push.ID != first.ID {
		t.Errorf("%+v", v.Push)
	}

	// Another tenant that hits the same id learns nothing of it.
	stolen := keyed(b.tenant, "anna", "k", "body", time.Hour)
	stolen.Push.Tenant = uuid.New()
	if v := want(stolen, store.KeyReused); v.Push.ID != uuid.Nil {
		t.Errorf("%+v", v)
	}
}

// TestAKeyBelongsToOneRequest also where none of the members of another one
// exists.
func TestAKeyBelongsToOneRequest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	member := func(id, request string, in time.Duration) store.Draft {
		d := keyed(b.tenant, "anna", "k", request, in)
		d.Push.ID = uuid.NewSHA1(b.tenant, []byte(id))
		return d
	}
	b.booked(t, "anna", time.Hour)
	for _, step := range []struct {
		drafts []store.Draft
		want   []store.Outcome
	}{
		{[]store.Draft{member("0", "first", time.Hour), member("1", "first", 2*time.Hour)}, []store.Outcome{store.Refused, store.Booked}},
		{[]store.Draft{member("0", "second", 3*time.Hour)}, []store.Outcome{store.KeyReused}},
		{[]store.Draft{member("single", "third", 3*time.Hour)}, []store.Outcome{store.KeyReused}},
		{[]store.Draft{member("0", "first", time.Hour), member("1", "first", 2*time.Hour)}, []store.Outcome{store.Refused, store.Replayed}},
	} {
		decisions, err := b.Book(t.Context(), store.Order{Drafts: step.drafts, Policy: threeRules})
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

// TestTheSameKeyTwiceInOneTransaction: nobody has committed yet.
func TestTheSameKeyTwiceInOneTransaction(t *testing.T) {
	t.Parallel()
	b := setup(t)
	drafts := []store.Draft{
		keyed(b.tenant, "anna", "k", "body", time.Hour), keyed(b.tenant, "anna", "k", "body", time.Hour), keyed(b.tenant, "anna", "k2", "body", 2*time.Hour),
	}
	v, err := b.Book(t.Context(), store.Order{Drafts: drafts, Policy: threeRules})
	if err != nil || v[0].Outcome != store.Booked || v[1].Outcome != store.Replayed || v[2].Outcome != store.Booked {
		t.Fatalf("%+v, %v", v, err)
	}
	if v[1].Push.ID != v[0].Push.ID {
		t.Error("replayed another push")
	}
}

// TestAKeyIsHeldUntilItsFirstRequestIsCommitted: two requests under one key
// begin at two processes, and the later one does not see the other's row yet.
func TestAKeyIsHeldUntilItsFirstRequestIsCommitted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := keyed(b.tenant, "anna", "key", "body", time.Hour), keyed(b.tenant, "bert", "key", "another", time.Hour)
	second.Push.ID = uuid.New()

	// The first waits, once it has its locks, for a table that the test has.
	b.exec(t, `BEGIN`)
	b.exec(t, `LOCK TABLE pushes IN SHARE MODE`) // lets others read it
	other := openURL(t, b.url, store.Config{})
	outcomes := make(chan store.Outcome, 2)
	go func() { outcomes <- book(t, b.Store, threeRules, first).Outcome }()
	b.waiting(t, 1)
	go func() { outcomes <- book(t, other, threeRules, second).Outcome }()
	b.waiting(t, 2)
	b.exec(t, `COMMIT`)
	if one, two := <-outcomes, <-outcomes; min(one, two) != store.Booked || max(one, two) != store.KeyReused {
		t.Errorf("outcomes %d and %d", one, two)
	}
}
