package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// taken is a line of the provider's journal: a push that it accepted.
type taken struct {
	Push, Recipient, Key string
	At                   time.Time
	Signed               bool
	Message              json.RawMessage
}

// provide is a provider in its own process. It writes what it takes to disk
// before it answers, and takes its time.
func provide(addr, journal string) {
	file, err := os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	hook, err := standardwebhooks.NewWebhook(strings.TrimPrefix(os.Getenv("PUSH_SECRET"), "whsec_"))
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	http.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		var p struct {
			ID, Recipient string
			Message       json.RawMessage
		}
		_ = json.Unmarshal(body, &p)
		line, _ := json.Marshal(taken{p.ID, p.Recipient, r.Header.Get("Idempotency-Key"), at, hook.Verify(body, r.Header) == nil, p.Message})
		mu.Lock()
		_, _ = file.Write(append(line, '\n'))
		mu.Unlock()
		time.Sleep(20 * time.Millisecond)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"message_id": "provider-`+p.ID+`"}`)
	})
	panic(http.ListenAndServe(addr, nil))
}

// taken reads the provider's journal.
func (w *world) taken() []taken {
	w.t.Helper()
	text, err := os.ReadFile(w.journal)
	if err != nil {
		w.t.Fatal(err)
	}
	var all []taken
	for line := range strings.Lines(string(text)) {
		var one taken
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			continue // being written
		}
		all = append(all, one)
	}
	return all
}

// once wants every push to have been taken exactly once.
func once(t *testing.T, all []taken, want int) {
	t.Helper()
	seen := map[string]int{}
	for _, one := range all {
		seen[one.Push]++
		if one.Key != one.Push || !one.Signed {
			t.Errorf("push %s came with key %q, signed %v", one.Push, one.Key, one.Signed)
		}
	}
	for id, n := range seen {
		if n != 1 {
			t.Errorf("push %s was taken %d times", id, n)
		}
	}
	if len(seen) != want {
		t.Errorf("%d pushes were taken, want %d", len(seen), want)
	}
}
