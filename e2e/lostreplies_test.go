package e2e

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

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
	// It is tried five times, or as often as the time of a request allows.
	if n := proxy.Lost(); n < 1 || n > 5 {
		t.Errorf("batch again and again: %d replies were swallowed, want 1 to 5", n)
	}
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
	b.submitAll("push", pushes, time.Now())
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
