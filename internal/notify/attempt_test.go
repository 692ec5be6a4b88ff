package notify

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/webhooks"

	"github.com/google/uuid"
)

// TestAttempt_Answers: the result of each answer.
func TestAttempt_Answers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status     int
		retryAfter string
		attempt    int
		want       string
		atLeast    time.Duration
		atMost     time.Duration
	}{
		"200":                            {200, "", 1, "delivered", 0, 0},
		"204":                            {204, "", 11, "delivered", 0, 0},
		"the first failure":              {500, "", 1, "failed", 4500 * time.Millisecond, 5500 * time.Millisecond},
		"the third":                      {404, "", 3, "failed", 108 * time.Second, 132 * time.Second},
		"the tenth":                      {503, "", 10, "failed", 432 * time.Minute, 528 * time.Minute},
		"the last":                       {503, "", 11, "given_up", 0, 0},
		"it asks to wait":                {429, "90", 1, "failed", 90 * time.Second, 90 * time.Second},
		"it asks to wait less":           {429, "1", 1, "failed", 4500 * time.Millisecond, 5500 * time.Millisecond},
		"it asks to wait for a month":    {503, "2592000", 1, "failed", 8 * time.Hour, 8 * time.Hour},
		"it asks for nonsense":           {503, "soon", 1, "failed", 4500 * time.Millisecond, 5500 * time.Millisecond},
		"a redirect":                     {301, "", 1, "failed", 4500 * time.Millisecond, 5500 * time.Millisecond},
		"410 ends the delivery and more": {410, "60", 1, "given_up", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEndpoint(t, func(rw http.ResponseWriter, _ delivery, _ int) int {
				if c.retryAfter != "" {
					rw.Header().Set("Retry-After", c.retryAfter)
				}
				return c.status
			})
			n := New(nil, nil, nil, time.Now, Config{Timeout: 5 * time.Second, AllowPrivateAddresses: true})
			defer n.client.Close()
			payload := []byte(`{"a": 1}`)
			got := n.attempt(t.Context(), webhooks.Outgoing{ID: uuid.New(), URL: e.URL, Secret: newSecret(), Attempt: c.attempt, Payload: payload})
			if outcome(got) != c.want || got.Status != c.status || got.Gone != (c.status == 410) || (got.Error == "") != got.Delivered || got.Retry < c.atLeast || got.Retry > c.atMost {
				t.Errorf("%+v, want %+v", got, c)
			}
			if body := e.requests()[0].body; !bytes.Equal(body, payload) {
				t.Errorf("got %s", body)
			}
		})
	}
}

// TestAttempt_InnerNetwork: a tenant learns whether a name of the inner network exists, and its addresses, only if
// webhooks may go there.
func TestAttempt_InnerNetwork(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		url     string
		private bool
		want    string
	}{
		{"http://127.0.0.1:1/", false, "no connection: the host has no public address"},
		{"http://localhost:1/", false, "no connection: the host has no public address"},
		{"http://169.254.169.254/", false, "no connection: the host has no public address"},
		{"http://missing.invalid/", false, "no connection: the host has no public address"},
		{"http://127.0.0.1:1/", true, "no connection: connection refused"},
	} {
		n := New(nil, nil, nil, time.Now, Config{Timeout: 5 * time.Second, AllowPrivateAddresses: row.private, Backoff: backoff()})
		got := n.attempt(t.Context(), webhooks.Outgoing{ID: uuid.New(), URL: row.url, Secret: newSecret(), Attempt: 1})
		n.client.Close()
		if got.Error != row.want {
			t.Errorf("%s, private allowed %v: %q", row.url, row.private, got.Error)
		}
	}
}

// TestBackoff_LastsADay: all pauses together last a day, however they are spread.
func TestBackoff_LastsADay(t *testing.T) {
	for range 1000 {
		id := uuid.New()
		var all time.Duration
		for i, pause := range backoff() {
			all += spread(pause, id, i+1)
			if got := spread(pause, id, i+1); got < pause*9/10 || got > pause*11/10 {
				t.Fatalf("%s spread to %s", pause, got)
			}
		}
		if all < 21*time.Hour || all > 27*time.Hour {
			t.Fatalf("it is given up after %s", all)
		}
	}
}

// TestBackoff_Spreads: events that failed together are retried at different times.
func TestBackoff_Spreads(t *testing.T) {
	seconds := map[time.Duration]bool{}
	for range 1000 {
		seconds[spread(time.Minute, uuid.New(), 1).Round(time.Second)] = true
	}
	if len(seconds) < 12 { // of 54 s to 66 s
		t.Errorf("1000 events come back in %d different seconds", len(seconds))
	}
}

// TestURLFault: every bad URL has a fault.
func TestURLFault(t *testing.T) {
	public := NewWebhooks(nil, WebhooksConfig{})
	private := NewWebhooks(nil, WebhooksConfig{AllowPrivateAddresses: true})
	for url, want := range map[string]struct{ public, private bool }{
		"https://example.com/hook?a=b":       {true, true},
		"http://example.com:8080":            {true, true},
		"http://127.0.0.1:8080/":             {false, true},
		"http://2130706433/":                 {false, true},
		"http://[::ffff:10.0.0.1]/":          {false, true},
		"http://metadata.localhost/":         {false, true},
		"http://169.254.169.254/latest":      {false, true},
		"https://user:password@example.com/": {},
		"https://example.com/#fragment":      {},
		"ftp://example.com/":                 {},
		"//example.com/":                     {},
		"example.com":                        {},
		"https://":                           {},
		"https://:443/":                      {},
		"https://exa mple.com":               {},
		"https://[::1":                       {},
		"":                                   {},
		"https://example.com:65535/":         {true, true},
		"https://example.com:/":              {true, true},
		"https://example.com:65536/":         {},
		"https://example.com:99999999999/":   {},
		"https://example.com:0/":             {},
		"https://[2606:4700::1111%25eth0]/":  {},
		"https://[::1%25eth0]/":              {},
		"https://bücher.example/":            {false, true},
		"https://1.2.3.256/":                 {false, true},
		"https://example.com/\x7f":           {},
		"file:///etc/passwd":                 {},
		"https://example.com/" + string(bytes.Repeat([]byte("a"), 2048)): {},
	} {
		if got := public.URLFault(url); (got == "") != want.public {
			t.Errorf("%s: %q", url, got)
		}
		if got := private.URLFault(url); (got == "") != want.private {
			t.Errorf("%s, private allowed: %q", url, got)
		}
		if got := public.URLFault(url); strings.Contains(got, "the operator can allow it") != strings.Contains(got, "public host") {
			t.Errorf("%s: the hint does not fit: %q", url, got)
		}
	}
}
