package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// slowConfig has a provider that may take its time, and a lease that ends when a
// test says so.
const slowConfig = `
policy:
  rules: [{name: one, limit: 1, window: 1h}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 1m, backoff: {first: 50ms, max: 100ms}}
delivery: {lease: 2m}
`

// slow submits a push for now whose provider takes five seconds to accept it,
// and waits until it is there.
func (b *bundle) slow() (path string) {
	b.t.Helper()
	status, a := b.call("POST", "/v1/pushes", object{"recipient": "anna", "message": object{"do": "slower", "times": 1}})
	if status != http.StatusCreated {
		b.t.Fatalf("submit: %d %v", status, a)
	}
	b.until("the provider has it", func() bool { return len(b.provider.Arrivals()) == 1 })
	return "/v1/pushes/" + a["id"].(string)
}

// outcomes returns the status of a push and the outcomes of its attempts.
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
	late := b.Start("worker", "DATABASE_URL="+through)
	path := b.slow()
	proxy.Freeze()
	b.until("the worker has the answer", func() bool { return strings.Contains(late.Log(), "push attempted") })
	b.endLeases()
	b.Start("worker")
	b.until("the attempt is given up", func() bool { return b.outcomes(path) == "scheduled unknown" })
	proxy.Thaw()
	b.until("the late answer counts", func() bool { return b.outcomes(path) == "sent delivered" })
	once(t, b.provider.Arrivals(), 1)
	b.wantAudited()
}

// endLeases ends the leases of all lanes, and of all attempts in a second, so that another worker need not wait long for them. A lease
// never ends before the provider has the request: the timeout of an attempt is at most half of its lease.
func (b *bundle) endLeases() {
	b.t.Helper()
	b.sql("UPDATE lanes SET owner = NULL, owned_until = '-infinity'")
	b.sql("UPDATE live SET next_at = statement_timestamp() + interval '1 second' WHERE token IS NOT NULL")
}

// TestWorker_Frozen stops a worker in the middle of an attempt until another worker makes the next one. That attempt
// waits until the rules allow it, because the first may have been delivered, and has the same key.
func TestWorker_Frozen(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: strings.Replace(slowConfig, "window: 1h", "window: 5s", 1)})
	b.StartAPI()
	frozen := b.Start("worker")
	path := b.slow()
	testenv.Check(t, frozen.Freeze())
	b.endLeases()
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
