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

// taken is a line of the provider's journal: a push that came to it, and that
// it accepted unless Did says what it did instead.
type taken struct {
	Push, Recipient, Key string
	At                   time.Time
	Signed               bool
	Message              json.RawMessage
	Attempt              int
	Did                  string
}

// provide is a provider in its own process. It writes what comes to disk
// before it answers, and takes its time. How it answers is for the message to
// say: "do" names a misbehavior, for the first "times" attempts if that is given.
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
	note := func(r *http.Request, did func(attempt int, message json.RawMessage) string) taken {
		at := time.Now()
		body, _ := io.ReadAll(r.Body)
		var p struct {
			ID, Recipient string
			Attempt       int
			Message       json.RawMessage
		}
		_ = json.Unmarshal(body, &p)
		one := taken{p.ID, p.Recipient, r.Header.Get("Idempotency-Key"), at, hook.Verify(body, r.Header) == nil, p.Message, p.Attempt, did(p.Attempt, p.Message)}
		line, _ := json.Marshal(one)
		mu.Lock()
		defer mu.Unlock()
		_, _ = file.Write(append(line, '\n'))
		return one
	}
	http.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		one := note(r, wanted)
		if misbehave, ok := misbehaviors[one.Did]; ok {
			misbehave(w, r)
			return
		}
		accept(w, one.Push)
	})
	http.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		note(r, func(int, json.RawMessage) string { return "followed" })
	})
	panic(http.ListenAndServe(addr, nil))
}

// wanted is what the message wants to be done instead of accepting it.
func wanted(attempt int, message json.RawMessage) string {
	var m struct {
		Do    string
		Times int
	}
	_ = json.Unmarshal(message, &m)
	if m.Times > 0 && attempt > m.Times {
		return ""
	}
	return m.Do
}

func accept(w http.ResponseWriter, push string) {
	time.Sleep(20 * time.Millisecond)
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"message_id": "provider-`+push+`"}`)
}

// misbehaviors are what a provider may do to a request that it has read.
var misbehaviors = map[string]http.HandlerFunc{
	"hang":        func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	"drip":        drips("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"),
	"drip-head":   drips("HTTP/1.1 200 OK\r\nX-Padding: "),
	"drop":        hangsUp(""),
	"garbage":     hangsUp("here is your answer\r\n\r\n"),
	"404":         answers(http.StatusNotFound, ""),
	"429":         answers(http.StatusTooManyRequests, "2"),
	"500":         answers(http.StatusInternalServerError, ""),
	"503":         answers(http.StatusServiceUnavailable, "2"),
	"503-no-time": answers(http.StatusServiceUnavailable, ""),
	"redirect": func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	},
	"large":     talks(http.StatusOK),
	"large-500": talks(http.StatusInternalServerError),
	"slow":      func(w http.ResponseWriter, _ *http.Request) { time.Sleep(time.Second); accept(w, "slow") },
}

func answers(status int, retryAfter string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if retryAfter != "" {
			w.Header().Set("Retry-After", retryAfter)
		}
		w.WriteHeader(status)
	}
}

// talks answers with 10 MB.
func talks(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		for range 160 {
			if _, err := w.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}
}

// hangsUp says something, and drops the connection.
func hangsUp(last string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = io.WriteString(c, last)
			_ = c.Close()
		}
	}
}

// drips says something, and then little, for as long as anybody listens.
func drips(first string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		for _, err = io.WriteString(c, first); err == nil; _, err = io.WriteString(c, "x") {
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// taken reads the provider's journal.
func (b *bundle) taken() []taken {
	b.t.Helper()
	text, err := os.ReadFile(b.journal)
	if err != nil {
		b.t.Fatal(err)
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
