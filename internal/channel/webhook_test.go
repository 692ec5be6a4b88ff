package channel

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
)

// A burst leaves its connections to the next one.
func TestWebhook_ReusesConnections(t *testing.T) {
	const burst = 32
	var together atomic.Pointer[sync.WaitGroup] // holds back the answers until all requests are there
	p := newProvider(t, func(c *net.TCPConn, r received, stop <-chan struct{}) bool {
		all := together.Load()
		all.Done()
		all.Wait()
		return answers(200, "")(c, r, stop)
	})
	w := newTestWebhook(t, WebhookConfig{URL: p.url()})
	for range 3 {
		var all, sends sync.WaitGroup
		all.Add(burst)
		together.Store(&all)
		for range burst {
			sends.Go(func() {
				if got := w.Send(t.Context(), testPush(), 1); got.Outcome != push.Delivered {
					t.Errorf("got %+v", got)
				}
			})
		}
		sends.Wait()
	}
	if requests, conns := p.seen(); len(requests) != 3*burst || conns > burst {
		t.Errorf("%d requests on %d connections, want %d on at most %d", len(requests), conns, 3*burst, burst)
	}
}

func TestWebhook_NoConnection(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	plain := newProvider(t, writes("220 hello\r\n", false))
	silent, err := net.Listen("tcp4", "127.0.0.1:0") // takes connections and says nothing
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()

	for _, tt := range []struct{ name, url, want string }{
		{"nobody listens", "http://" + closed.Addr().String(), "connection refused"},
		{"no such host", "http://provider.invalid", ""},
		{"not TLS", strings.Replace(plain.url(), "http:", "https:", 1), "no connection"},
		{"TLS handshake hangs", "https://" + silent.Addr().String(), "timed out"},
		{"unknown certificate", untrusted.URL, "unknown authority"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			url := strings.Replace(tt.url, "://", "://"+markUser+":"+markPassword+"@", 1) + "/?" + markQuery
			timeout := ample
			if tt.name == "TLS handshake hangs" {
				timeout = brief
			}
			got := newTestWebhook(t, WebhookConfig{Connection: testConnection(timeout), URL: url}).Send(t.Context(), testPush(), 1)
			if got.Outcome != push.Refused || got.Final || !strings.Contains(got.Error, tt.want) {
				t.Errorf("got %+v, want a temporary refusal for %q", got, tt.want)
			}
			checkError(t, got.Error)
		})
	}
}

func TestWebhook_Canceled(t *testing.T) {
	t.Run("before the connection", func(t *testing.T) {
		provider := newProvider(t, answers(200, ""))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		got := newTestWebhook(t, WebhookConfig{URL: provider.url()}).Send(ctx, testPush(), 1)
		if got.Outcome != push.Refused {
			t.Errorf("got %+v, want refused", got)
		}
	})
	t.Run("after the request", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		provider := newProvider(t, func(_ *net.TCPConn, _ received, stop <-chan struct{}) bool {
			cancel()
			<-stop
			return false
		})
		got := newTestWebhook(t, WebhookConfig{URL: provider.url()}).Send(ctx, testPush(), 1)
		if got.Outcome != push.Unknown {
			t.Errorf("got %+v, want unknown", got)
		}
	})
}

func TestWebhook_TLS(t *testing.T) {
	server := http2Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"id":"` + r.Proto + `"}`))
	}))
	w := newTestWebhook(t, WebhookConfig{Connection: Connection{Timeout: ample, Roots: roots(server)}, URL: server.URL})
	got := w.Send(t.Context(), testPush(), 1)
	if diff := cmp.Diff(Result{Outcome: push.Delivered, ProviderMessageID: "HTTP/1.1"}, got, notWhen); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

func TestWebhook_BadSettings(t *testing.T) {
	for _, tt := range []struct {
		name, names string
		cfg         WebhookConfig
	}{
		{"no url", "url", WebhookConfig{}},
		{"relative url", "url", WebhookConfig{URL: "/send?" + markQuery}},
		{"another scheme", "url", WebhookConfig{URL: "ftp://" + markUser + ":" + markPassword + "@host"}},
		{"no host", "url", WebhookConfig{URL: "http://:80/" + markQuery}},
		{"broken url", "url", WebhookConfig{URL: "http://u:" + markPassword + "/x@host"}},
		{"broken secret", "secret", WebhookConfig{URL: "http://host", Secret: "whsec_" + markSecret + "!"}},
		{"empty secret", "secret", WebhookConfig{URL: "http://host", Secret: "whsec_"}},
		{"broken previous secret", "previous_secret", WebhookConfig{URL: "http://host", PreviousSecret: "whsec_" + markSecret + "!"}},
		{"negative timeout", "timeout", WebhookConfig{URL: "http://host", Connection: Connection{Timeout: -1}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.cfg.Name = "sms"
			_, err := NewWebhook(tt.cfg)
			if err == nil {
				t.Fatal("no error")
			}
			if !strings.HasPrefix(err.Error(), "channel sms: ") || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("the error names neither channel nor setting: %v", err)
			}
			checkError(t, err.Error())
		})
	}
}
