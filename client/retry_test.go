package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// unreliable is an API that answers in these ways, one after the other, and keeps what it was asked.
type unreliable struct {
	mu      sync.Mutex // a call that was hung up ends while its answer is made
	answers []func(w http.ResponseWriter)
	keys    []string
	bodies  []string
}

func (u *unreliable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text, _ := io.ReadAll(r.Body)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.keys, u.bodies = append(u.keys, r.Header.Get("Idempotency-Key")), append(u.bodies, string(text))
	u.answers[min(len(u.keys), len(u.answers))-1](w)
}

func status(code int, retryAfter string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.Header().Set("Retry-After", retryAfter)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"id": "made"}`)
	}
}

func hangUp(http.ResponseWriter) { panic(http.ErrAbortHandler) }

// TestRetry: calls that can be repeated are, with the same key and the same body, and others only if they did nothing.
func TestRetry(t *testing.T) {
	t.Parallel()
	submit := func(ctx context.Context, c *client.Client) error {
		_, err := c.Pushes.Submit(ctx, "", client.NewPush{Recipient: "anna"})
		return err
	}
	upload := func(lines io.Reader) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Recipients.Import(ctx, lines, client.CSV)
			return err
		}
	}
	version := int64(7)
	conditional := func(ctx context.Context, c *client.Client) error {
		_, err := c.Policy.Delete(ctx, client.PolicyOptions{IfVersion: &version})
		return err
	}
	take := func(dry bool) func(context.Context, *client.Client) error {
		return func(ctx context.Context, c *client.Client) error {
			_, err := c.Limits.Take(ctx, client.NewTake{Key: "k", DryRun: dry})
			return err
		}
	}
	refund := func(ctx context.Context, c *client.Client) error {
		_, err := c.Limits.Refund(ctx, client.NewTake{Key: "k"})
		return err
	}
	reset := func(ctx context.Context, c *client.Client) error {
		_, err := c.Limits.Reset(ctx, client.NewTake{Key: "k"})
		return err
	}
	hook := func(ctx context.Context, c *client.Client) error {
		_, err := c.Webhooks.Create(ctx, client.NewWebhook{URL: "https://example.com"})
		return err
	}
	for _, row := range []struct {
		name    string
		call    func(context.Context, *client.Client) error
		answers []func(http.ResponseWriter)
		tries   int
		succeed bool
	}{
		{"unavailable", submit, []func(http.ResponseWriter){status(503, ""), status(503, ""), status(201, "")}, 3, true},
		{"connection lost", submit, []func(http.ResponseWriter){hangUp, status(201, "")}, 2, true},
		{"proxy without an API", submit, []func(http.ResponseWriter){status(502, ""), status(504, ""), status(201, "")}, 3, true},
		{"too fast", submit, []func(http.ResponseWriter){status(429, "0"), status(201, "")}, 2, true},
		{"to wait for long", submit, []func(http.ResponseWriter){status(503, "3600")}, 1, false},
		{"for ever", submit, []func(http.ResponseWriter){status(503, "")}, 4, false},
		{"refused", submit, []func(http.ResponseWriter){status(409, "")}, 1, false},
		{"broken", submit, []func(http.ResponseWriter){status(500, "")}, 1, false},
		{"file", upload(strings.NewReader("recipient\na\n")), []func(http.ResponseWriter){hangUp, status(200, "")}, 2, true},
		{"stream", upload(io.MultiReader(strings.NewReader("recipient\na\n"))), []func(http.ResponseWriter){status(503, "")}, 1, false},
		{"not twice", conditional, []func(http.ResponseWriter){hangUp}, 1, false},
		{"take", take(false), []func(http.ResponseWriter){hangUp}, 1, false},
		{"dry run", take(true), []func(http.ResponseWriter){hangUp, status(200, "")}, 2, true},
		{"refund", refund, []func(http.ResponseWriter){status(503, "")}, 1, false},
		{"reset", reset, []func(http.ResponseWriter){status(503, ""), status(200, "")}, 2, true},
		{"webhook", hook, []func(http.ResponseWriter){hangUp}, 1, false},
		{"not twice, but too fast", conditional, []func(http.ResponseWriter){status(429, ""), status(200, "")}, 2, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			api := &unreliable{answers: row.answers}
			server := httptest.NewServer(api)
			defer server.Close()
			c, err := client.New(server.URL, "key", client.Config{Retries: 3, FirstPause: time.Millisecond, LongestPause: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			if err := row.call(t.Context(), c); (err == nil) != row.succeed {
				t.Errorf("the call ended with %v", err)
			}
			api.mu.Lock()
			defer api.mu.Unlock()
			if len(api.keys) != row.tries {
				t.Fatalf("%d requests, want %d", len(api.keys), row.tries)
			}
			for i := range api.keys {
				if api.keys[i] != api.keys[0] || api.bodies[i] != api.bodies[0] {
					t.Errorf("request %d has the key %q and the body %q, the first %q and %q", i, api.keys[i], api.bodies[i], api.keys[0], api.bodies[0])
				}
			}
		})
	}
}

// TestRetry_Context: a context ends the pauses.
func TestRetry_Context(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(&unreliable{answers: []func(http.ResponseWriter){func(w http.ResponseWriter) {
		status(503, "")(w)
		cancel()
	}}})
	defer server.Close()
	c, err := client.New(server.URL, "key", client.Config{FirstPause: time.Hour, LongestPause: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Pushes.Get(ctx, "x")
	if !errors.As(err, new(*client.Unavailable)) && !errors.Is(err, context.Canceled) {
		t.Errorf("the call ended with %v", err)
	}
}

// TestNew_Faults: an address or a key that cannot be one is refused at once.
func TestNew_Faults(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ address, key string }{
		{"127.0.0.1:8080", "k"}, {"ftp://a", "k"}, {"http://", "k"}, {"http://a?b", "k"}, {"http://a", ""}, {"http://a", "k\nX: y"},
	} {
		if _, err := client.New(row.address, row.key, client.Config{}); err == nil {
			t.Errorf("%q with key %q is taken", row.address, row.key)
		}
	}
}

// TestRedirect: the key goes to no other address.
func TestRedirect(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the redirect was followed") }))
	defer elsewhere.Close()
	server := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	c, err := client.New(server.URL, "key", client.Config{Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	var problem *client.Problem
	if _, err := c.Pushes.Get(t.Context(), "x"); !errors.As(err, &problem) || problem.Status != http.StatusTemporaryRedirect {
		t.Errorf("the call ended with %v", err)
	}
}
