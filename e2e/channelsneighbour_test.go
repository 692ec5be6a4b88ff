package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestNeighbours_Channels: a tenant does its worst with channels. Nine thousand pushes are due through eighteen channels, whose providers
// hang, fail, and ask for pauses; it changes the channels, tests them, pauses them, and makes and deletes others, as fast as it can.
// Another tenant's pushes are at most three times as late as without it, through the operator's channel and through its own.
func TestNeighbours_Channels(t *testing.T) {
	allOnly(t)
	t.Parallel()
	over := make(chan struct{})
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hang":
			select {
			case <-r.Context().Done():
			case <-over:
			}
		case "/fail":
			w.WriteHeader(http.StatusInternalServerError)
		case "/busy":
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	t.Cleanup(provider.Close)
	t.Cleanup(func() { close(over) })
	b := setupWith(t, options{config: pausesNeighbourConfig})
	b.StartAPI()
	b.Start("worker")
	b.Start("worker")
	put := func(b *bundle, name, path string, n int) int {
		a, err := b.ask(http.MethodPut, "/v1/channels/"+name, object{"type": "webhook", "url": provider.URL + path, "timeout": fmt.Sprint(5+n%20, "s")})
		if err != nil {
			return 0
		}
		return a.status
	}
	calm := b.tenant("calm")
	if status := put(calm, "mine", "/", 0); status != http.StatusCreated {
		t.Fatal(status)
	}
	calmly := max(calm.lateness("push", "calm-", 4), calmest)
	calmlyOwn := max(calm.lateness("mine", "calm-own-", 4), calmest)

	const own, pushes = 18, 500
	paths := []string{"/hang", "/fail", "/busy"}
	at := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second).Format(time.RFC3339)
	for i := range own {
		name := fmt.Sprint("own-", i)
		if status := put(b, name, paths[i%3], 0); status != http.StatusCreated {
			t.Fatal(status)
		}
		var some []object
		for n := range pushes {
			some = append(some, object{"recipient": fmt.Sprint(name, "-", n), "channel": name, "send_at": at, "message": object{}})
		}
		if status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": some}); status != http.StatusOK || a["accepted"] != float64(pushes) {
			t.Fatalf("%d %v", status, a)
		}
	}
	if status := put(b, "tested", "/fail", 0); status != http.StatusCreated {
		t.Fatal(status)
	}
	var changes, tests, pauses atomic.Int64
	var n atomic.Int64
	stop := repeat(
		func() {
			if i := int(n.Add(1)); put(b, fmt.Sprint("own-", i%own), paths[i%3], i) == http.StatusOK {
				changes.Add(1)
			}
		},
		func() {
			if put(b, "brief", "/fail", 0) == http.StatusCreated {
				changes.Add(1)
			}
			_, _ = b.ask(http.MethodDelete, "/v1/channels/brief", nil)
		},
		func() {
			if _, err := b.ask(http.MethodPost, "/v1/channels/tested/test", object{"to": "x", "message": object{}}); err == nil {
				tests.Add(1)
			}
		},
		func() { b.pausing("channel", "own-3", &pauses) },
	)
	storm := calm.lateness("push", "storm-", 6)
	stormOwn := calm.lateness("mine", "storm-own-", 6)
	stop()
	t.Logf("p99 of the other tenant: %s calm, %s beside %d changes of channels, %d tests and %d changes of pauses", calmly, storm, changes.Load(), tests.Load(), pauses.Load())
	t.Logf("through its own channel: %s calm, %s beside them", calmlyOwn, stormOwn)
	if storm > 3*calmly || stormOwn > 3*calmlyOwn {
		t.Errorf("another tenant's p99 is %s and %s through its own channel, and %s and %s without the other's channels", storm, stormOwn, calmly, calmlyOwn)
	}
	if changes.Load() < 50 || tests.Load() < 50 || pauses.Load() < 50 {
		t.Errorf("%d changes of channels, %d tests, %d changes of pauses", changes.Load(), tests.Load(), pauses.Load())
	}
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM sends WHERE recipient LIKE 'own-%'`); n == 0 {
		t.Error("nothing was tried through the tenant's channels")
	}
}
