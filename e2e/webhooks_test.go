package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/testenv"
)

const webhookConfig = `
policy:
  rules: [{name: spaced, limit: 1, window: 1s}, {name: per-day, limit: 5, window: 24h}]
channels:
  push: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 30s, backoff: {first: 200ms, max: 1s}}
delivery: {lease: 1m}
webhooks: {timeout: 5s, allow_private_addresses: true}
`

// listener is the endpoint of a tenant. It takes every fifth event only when
// that comes a second time, and lets the very first request hang.
type listener struct {
	*httptest.Server
	hangs chan struct{} // closed when the first request is there

	mu       sync.Mutex
	verifier *standardwebhooks.Webhook
	requests map[string]int      // by webhook-id
	told     map[string][]string // by push: the events that were taken, each once
	bad      []string
}

func newListener(t *testing.T) *listener {
	l := &listener{hangs: make(chan struct{}), requests: map[string]int{}, told: map[string][]string{}}
	first := true
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		l.mu.Lock()
		hang := first
		first = false
		status := l.take(r, body)
		l.mu.Unlock()
		if hang {
			close(l.hangs)
			<-r.Context().Done()
			return
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(l.Close)
	return l
}

func (l *listener) take(r *http.Request, body []byte) (status int) {
	if err := l.verifier.Verify(body, r.Header); err != nil {
		l.bad = append(l.bad, err.Error())
	}
	var event struct {
		Type string
		Data struct {
			ID     string
			PushID string `json:"push_id"`
		}
	}
	_ = json.Unmarshal(body, &event)
	id := r.Header.Get("Webhook-Id")
	l.requests[id]++
	switch n := l.requests[id]; {
	case n == 1 && len(l.requests)%5 == 1:
		return http.StatusInternalServerError
	case n <= 2:
		push := event.Data.ID + event.Data.PushID
		if !slices.Contains(l.told[push], event.Type) || event.Type == "push.deferred" {
			l.told[push] = append(l.told[push], event.Type)
		}
	}
	return http.StatusNoContent
}

// of returns the events of a push, in the order of their arrival.
func (l *listener) of(push string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.told[push], " ")
}

// TestWebhooks checks that every event of a push is delivered, signed and in order, by real programs, to an endpoint
// that fails repeatedly, and although the worker is killed in the middle.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: webhookConfig})
	b.StartAPI()
	l := newListener(t)
	status, hook := b.call("POST", "/v1/webhooks", object{"url": l.URL})
	if status != http.StatusCreated {
		t.Fatalf("%d %v", status, hook)
	}
	var err error
	l.verifier, err = standardwebhooks.NewWebhook(hook["secret"].(string))
	testenv.Check(t, err)

	want := map[string]string{}
	submit := func(events string, push object) string {
		t.Helper()
		status, p := b.call("POST", "/v1/pushes", push)
		if status != http.StatusCreated {
			t.Fatalf("%d %v", status, p)
		}
		want[p["id"].(string)] = events
		return p["id"].(string)
	}
	soon := time.Now().UTC().Truncate(time.Second)
	b.expire(submit("push.scheduled push.expired", object{"recipient": "expired", "message": object{}}))
	id := submit("push.scheduled push.canceled", object{"recipient": "canceled", "message": object{}, "send_at": soon.Add(time.Hour).Format(time.RFC3339)})
	if status, answer := b.call("POST", "/v1/pushes/"+id+"/cancel", nil); status != http.StatusOK {
		t.Fatalf("%d %v", status, answer)
	}
	for i := range 5 {
		events := "push.scheduled"
		if i >= 3 {
			events = "push.scheduled quota.near_limit"
		}
		submit(events, object{"recipient": "busy", "message": object{}, "send_at": soon.Add(time.Duration(i+1) * time.Hour).Format(time.RFC3339)})
	}

	killed := b.Start("worker")
	<-l.hangs
	testenv.Check(t, killed.Kill())
	submit("push.scheduled push.failed", object{"recipient": "failed", "message": object{"do": "404"}})
	submit("push.scheduled push.deferred push.sent", object{"recipient": "deferred", "message": object{"do": "503-no-time", "times": 1}})
	for i := range 10 {
		submit("push.scheduled push.sent", object{"recipient": fmt.Sprint("sent", i), "message": object{}})
	}
	b.Start("worker")
	missing := func() string {
		var ids []string
		for id, events := range want {
			if l.of(id) != events {
				ids = append(ids, fmt.Sprintf("%s: %q, want %q", id, l.of(id), events))
			}
		}
		return strings.Join(ids, "\n")
	}
	testenv.UntilWhole(t, 50*time.Millisecond, missing)
	b.until("all of them are known to be delivered", func() bool {
		_, list := b.call("GET", "/v1/webhooks/"+hook["id"].(string)+"/deliveries?status=waiting", nil)
		_, more := b.call("GET", "/v1/webhooks/"+hook["id"].(string)+"/deliveries?status=sending", nil)
		return len(list["deliveries"].([]any))+len(more["deliveries"].([]any)) == 0
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.bad) > 0 {
		t.Errorf("%d bad signatures: %s", len(l.bad), l.bad[0])
	}
	if len(l.told) != len(want) {
		t.Errorf("events of %d pushes, want %d", len(l.told), len(want))
	}
	if repeated := slices.Max(slices.Collect(maps.Values(l.requests))); repeated < 2 {
		t.Error("nothing was ever repeated: nothing was tested")
	}
	b.wantAudited()
}
