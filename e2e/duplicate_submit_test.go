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

// TestLostReplies_Commits: Postgres has committed, but its reply is swallowed and
// the connection cut. The API finds that out by running the commit again; and
// if it has to give up, so does its caller through another API.
func TestLostReplies_Commits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	proxy, through := testenv.Proxy(t, b.Database)
	cut := b.beside("DATABASE_URL=" + through)
	at := time.Now().UTC().Add(time.Hour).Truncate(time.Second)
	batch := func(name string) object {
		var members []object
		for i := range 50 {
			members = append(members, object{"recipient": fmt.Sprint(name, i/2), "send_at": at.Format(time.RFC3339), "message": object{}})
		}
		return object{"pushes": members} // every second is refused because of the one before it
	}
	lost := func(what string, want int) {
		t.Helper()
		if n := proxy.Lost(); n != want {
			t.Errorf("%s: %d replies were swallowed, want %d", what, n, want)
		}
	}

	proxy.Lose(1, "COMMIT\x00")
	status, a := cut.call("POST", "/v1/pushes/batch", batch("a"))
	lost("batch", 1)
	if status != http.StatusOK || a["accepted"] != 25.0 || a["refused"] != 25.0 {
		t.Errorf("batch: %d, %v accepted, %v refused", status, a["accepted"], a["refused"])
	}

	proxy.Lose(100, "COMMIT\x00")
	first, err := cut.ask("POST", "/v1/pushes/batch", batch("b"), "Idempotency-Key", "b")
	lost("batch again and again", 5)
	if err != nil || first.status != http.StatusServiceUnavailable || first.header.Get("Retry-After") == "" {
		t.Errorf("batch whose replies are all lost: %v, %v", first, err)
	}
	again, err := b.ask("POST", "/v1/pushes/batch", batch("b"), "Idempotency-Key", "b")
	if err != nil || again.status != http.StatusOK || again.body["accepted"] != 25.0 || again.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("batch repeated through the other API: %v accepted, replayed %q, %v", again.body["accepted"], again.header.Get("Idempotency-Replayed"), err)
	}

	proxy.Lose(1, "COMMIT\x00")
	status, a = cut.call("POST", "/v1/pushes", object{"recipient": "c", "send_at": at.Format(time.RFC3339), "message": object{}})
	lost("submit", 1)
	if status != http.StatusCreated {
		t.Fatalf("submit: %d %v", status, a)
	}
	path, later := "/v1/pushes/"+a["id"].(string), at.Add(time.Minute).Format(time.RFC3339)
	proxy.Lose(1, "COMMIT\x00")
	if status, a = cut.call("PATCH", path, object{"send_at": later}); status != http.StatusOK || a["send_at"] != later {
		t.Errorf("move: %d %v", status, a)
	}
	lost("move", 1)
	proxy.Lose(1, "UPDATE 0\x00")
	if status, a = cut.call("POST", path+"/cancel", nil); status != http.StatusOK || a["status"] != "canceled" {
		t.Errorf("cancel: %d %v", status, a)
	}
	lost("cancel", 1)

	_, list := b.call("GET", "/v1/pushes?page_size=500", nil)
	if got := len(list["pushes"].([]any)); got != 51 {
		t.Errorf("%d pushes were made, want 51", got)
	}
	b.wantAudited()
}

// TestLostReplies_Workers: claims and finishes whose replies are swallowed are
// neither lost nor carried out twice.
func TestLostReplies_Workers(t *testing.T) {
	t.Parallel()
	const pushes = 40
	b := setup(t)
	b.StartAPI()
	var members []object
	for i := range pushes {
		members = append(members, object{"recipient": fmt.Sprint("r", i), "message": object{}})
	}
	if status, a := b.call("POST", "/v1/pushes/batch", object{"pushes": members}); status != http.StatusOK || a["accepted"] != float64(pushes) {
		t.Fatalf("batch: %d %v", status, a)
	}
	proxy, through := testenv.Proxy(t, b.Database)
	proxy.Lose(4, "COMMIT\x00", "SELECT 1\x00", fmt.Sprintf("SELECT %d\x00", pushes)) // of claims, and of finishes alone or all together
	b.Start("worker", "DATABASE_URL="+through)
	b.until("all is sent", func() bool {
		_, a := b.call("GET", "/v1/pushes?page_size=500&status=sent", nil)
		return len(a["pushes"].([]any)) == pushes
	})
	if n := proxy.Lost(); n != 4 {
		t.Errorf("%d replies were swallowed, want 4", n)
	}
	once(t, b.provider.Arrivals(), pushes)
	b.wantAudited()
}

// slowConfig has a provider that may take its time, and a lease that is over
// soon after.
const slowConfig = `
policy:
  rules: [{name: one, limit: 1, window: 5s}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1500ms, backoff: {first: 50ms, max: 100ms}}
delivery: {lease: 3s}
`

// slow submits a push for now whose provider takes a second to accept it, and
// waits until it is there.
func (b *bundle) slow() (path string) {
	b.t.Helper()
	status, a := b.call("POST", "/v1/pushes", object{"recipient": "anna", "message": object{"do": "slow", "times": 1}})
	if status != http.StatusCreated {
		b.t.Fatalf("submit: %d %v", status, a)
	}
	b.until("the provider has it", func() bool { return len(b.provider.Arrivals()) == 1 })
	return "/v1/pushes/" + a["id"].(string)
}

// outcomes are those of a push's attempts, after its status.
func (b *bundle) outcomes(path string) string {
	b.t.Helper()
	_, a := b.call("GET", path, nil)
	all := fmt.Sprint(a["status"])
	for _, s := range a["sends"].([]any) {
		all += fmt.Sprint(" ", s.(object)["outcome"])
	}
	return all
}

// TestReap_LateAnswer: the worker gets the answer, but can tell
// Postgres only after another worker has given the attempt up for lost. It
// still ends the push, and no second attempt is made.
func TestReap_LateAnswer(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: slowConfig})
	b.StartAPI()
	proxy, through := testenv.Proxy(t, b.Database)
	b.Start("worker", "DATABASE_URL="+through)
	path := b.slow()
	proxy.Freeze()
	b.Start("worker")
	b.until("the attempt is given up", func() bool { return b.outcomes(path) == "scheduled unknown" })
	proxy.Thaw()
	b.until("the late answer counts", func() bool { return b.outcomes(path) == "sent delivered" })
	once(t, b.provider.Arrivals(), 1)
	b.wantAudited()
}

// TestWorker_Frozen: a worker stops in the middle of an attempt, for so long
// that another makes the next one. That waits until the rules allow it, for the
// first may have been delivered, and bears the same key.
func TestWorker_Frozen(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: slowConfig})
	b.StartAPI()
	frozen := b.Start("worker")
	path := b.slow()
	testenv.Check(t, frozen.Freeze())
	b.Start("worker")
	b.until("another worker delivers it", func() bool { return b.outcomes(path) == "sent unknown delivered" })
	testenv.Check(t, frozen.Thaw())
	b.stop(frozen) // with whatever it still had to say
	all := b.provider.Arrivals()
	if len(all) != 2 || all[0].Key != all[1].Key || all[1].Attempt != 2 || all[1].At.Sub(all[0].At) < 5*time.Second {
		t.Errorf("the provider got %+v", all)
	}
	if got := b.outcomes(path); got != "sent unknown delivered" && got != "sent delivered delivered" {
		t.Errorf("it ended %s", got)
	}
	b.wantAudited()
}

// TestCancel_AfterUnknownAttempt says that the message may have arrived.
func TestCancel_AfterUnknownAttempt(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.StartAPI()
	other := b.beside()
	b.Start("worker")
	for _, v := range []struct {
		recipient string
		in        time.Duration
		before    string // the cancel
	}{
		{"attempted", 0, "scheduled unknown"},
		{"untouched", time.Hour, "scheduled"},
	} {
		status, a := b.call("POST", "/v1/pushes", object{"recipient": v.recipient, "send_at": time.Now().Add(v.in).Format(time.RFC3339), "message": object{"do": "drop"}})
		if status != http.StatusCreated {
			t.Fatalf("submit: %d %v", status, a)
		}
		path := "/v1/pushes/" + a["id"].(string)
		b.until(v.before, func() bool { return b.outcomes(path) == v.before })
		for range 2 {
			for _, api := range []*bundle{b, other} {
				status, a = api.call("POST", path+"/cancel", nil)
				if status != http.StatusOK || a["status"] != "canceled" || a["possibly_delivered"] != (v.in == 0) {
					t.Errorf("%s: %d %v", v.recipient, status, a)
				}
			}
		}
	}
	if n := len(b.provider.Arrivals()); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}
