package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// both sends two requests at the same time, one to each API.
func both(t *testing.T, one, other func() (answer, error)) (a, b answer) {
	t.Helper()
	var errs [2]error
	var running sync.WaitGroup
	running.Go(func() { a, errs[0] = one() })
	running.Go(func() { b, errs[1] = other() })
	running.Wait()
	for _, err := range errs {
		testenv.Check(t, err)
	}
	return a, b
}

// submits returns a submit that is ready to go.
func (b *bundle) submits(recipient string, at time.Time, key, title string) func() (answer, error) {
	body := object{"recipient": recipient, "send_at": at.Format(time.RFC3339), "message": object{"title": title}}
	return func() (answer, error) { return b.ask("POST", "/v1/pushes", body, "Idempotency-Key", key) }
}

// TestDuplicateSubmit_TwoAPIs races two requests on two APIs: the same request
// twice, two requests with one key, and two for one place. One push is made
// each time.
func TestDuplicateSubmit_TwoAPIs(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	other := b.beside()
	const rounds = 3 // with a day between: at first no cache knows the recipient, then all do
	start := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	made, replays := 0, 0
	for i := range 20 {
		who := fmt.Sprint("r", i)
		for round := range rounds {
			at, key := start.Add(time.Duration(round)*25*time.Hour), fmt.Sprint("same-", i, "-", round)
			first, second := both(t, b.submits(who, at, key, "x"), other.submits(who, at, key, "x"))
			replayed := func(a answer) bool { return a.header.Get("Idempotency-Replayed") == "true" }
			if first.status != http.StatusCreated || second.status != http.StatusCreated || first.body["id"] != second.body["id"] || replayed(first) == replayed(second) {
				t.Fatalf("the same twice: %v (replayed: %v) and %v (replayed: %v)", first, replayed(first), second, replayed(second))
			}
			made, replays = made+1, replays+1

			key = fmt.Sprint("reused-", i, "-", round)
			first, second = both(t, b.submits(who, at.Add(time.Hour), key, "x"), other.submits(who, at.Add(time.Hour), key, "y"))
			wantOne(t, first, second, "idempotency-key-reused")
			made++

			first, second = both(t, b.submits(who, at.Add(2*time.Hour), key+"-a", "x"), other.submits(who, at.Add(2*time.Hour+59*time.Second), key+"-b", "x"))
			wantOne(t, first, second, "quota-exceeded")
			made++
		}
	}
	_, list := b.call("GET", "/v1/pushes?page_size=500", nil)
	if got := len(list["pushes"].([]any)); got != made {
		t.Errorf("%d pushes were made, want %d", got, made)
	}
	b.wantAudited()
}

// wantOne wants one of two to be made, and the other to have a problem, which
// names the first if it is about a place.
func wantOne(t *testing.T, a, b answer, problem string) {
	t.Helper()
	if a.status != http.StatusCreated {
		a, b = b, a
	}
	if a.status != http.StatusCreated || b.body["type"] != "urn:sendquota:problem:"+problem {
		t.Fatalf("one is to be made, and the other has the problem %s: %v and %v", problem, a, b)
	}
	if violations, ok := b.body["violations"].([]any); ok {
		if conflict := violations[0].(object)["conflicts"].([]any)[0].(object); conflict["id"] != a.body["id"] {
			t.Errorf("the place is held by %v, but the refusal names %v", a.body["id"], conflict)
		}
	}
}
