package channel

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// subject is a channel under the test that all of them pass.
type subject struct {
	name    string
	mail    bool // it speaks SMTP; all others HTTP
	coded   bool // a refusal is permanent only if its code is
	to      string
	differs map[string]Result // what it makes of a row, where that is something else
	start   func(t *testing.T, r row, to Connection) (c Channel, requests func() int)
}

func (s subject) push() push.Push {
	p := testPush()
	p.To = s.to
	return p
}

// httpSubject is the start of a channel that posts to the URL of a provider.
func httpSubject(build func(t *testing.T, url string, c Connection) Channel) func(*testing.T, row, Connection) (Channel, func() int) {
	return func(t *testing.T, r row, to Connection) (Channel, func() int) {
		p := newProvider(t, r.behavior)
		return build(t, p.url(), to), func() int { requests, _ := p.seen(); return len(requests) }
	}
}

// ample is for attempts that end by themselves, and brief for attempts that hang, which must get that far in time on a
// busy machine, too.
const (
	ample = 20 * time.Second
	brief = 5 * time.Second
)

func testConnection(timeout time.Duration) Connection {
	return Connection{Name: "push", Timeout: timeout, AllowPrivateAddresses: true, Now: testNow}
}

func subjects() []subject {
	return []subject{
		{name: "webhook", to: markTo, start: httpSubject(func(t *testing.T, url string, c Connection) Channel {
			return newTestWebhook(t, WebhookConfig{Connection: c, URL: url + "/send?token=" + markQuery})
		})},
		{name: "sms", coded: true, to: markNumber, start: httpSubject(func(t *testing.T, url string, c Connection) Channel {
			return newTestSMS(t, SMSConfig{Connection: c, BaseURL: url})
		})},
		{name: "fcm", coded: true, to: testRegistration, start: httpSubject(func(t *testing.T, url string, c Connection) Channel {
			return newTestFCM(t, newGoogle(t), FCMConfig{Connection: c, BaseURL: url})
		})},
		{name: "apns", coded: true, to: markDevice, start: httpSubject(func(t *testing.T, url string, c Connection) Channel {
			return newTestAPNs(t, bridge(t, url), APNsConfig{Connection: c})
		})},
		{name: "email", mail: true, to: testMailbox, start: startEmail, differs: map[string]Result{
			// The message was not there yet.
			"hangs up without reading": {Outcome: push.Refused, Error: "…"},
		}},
	}
}

func startEmail(t *testing.T, r row, to Connection) (Channel, func() int) {
	script := mailScript{"dot": mailAnswers()[r.name]}
	if r.behavior == nil {
		script = mailScript{"greeting": mailAnswers()[r.name]}
	}
	server := newMailServer(t, mailSetup{script: script})
	to.Timeout *= 2 // a conversation over TLS needs longer than a request to begin
	e := newTestEmail(t, server, EmailConfig{Connection: to})
	return e, func() int { return len(server.messages()) }
}

// bridge is a server of HTTP/2 before a provider that speaks HTTP/1.1. What
// befalls the provider's connection befalls the request's stream.
func bridge(t *testing.T, provider string) *httptest.Server {
	transport := &http.Transport{MaxResponseHeaderBytes: 64 << 10}
	t.Cleanup(transport.CloseIdleConnections)
	return http2Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out, err := http.NewRequestWithContext(r.Context(), r.Method, provider+r.URL.Path, io.NopCloser(r.Body))
		if err != nil {
			t.Error(err)
		}
		out.Header, out.ContentLength = r.Header, r.ContentLength
		res, err := transport.RoundTrip(out)
		if err != nil || res.StatusCode < 200 { // HTTP/2 has no 101
			panic(http.ErrAbortHandler)
		}
		defer res.Body.Close()
		for name, values := range res.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(res.StatusCode)
		_ = http.NewResponseController(w).Flush()
		if _, err := io.Copy(flushing{w}, res.Body); err != nil {
			panic(http.ErrAbortHandler)
		}
	}))
}

// flushing passes on what drips.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	_ = http.NewResponseController(f.ResponseWriter).Flush()
	return n, err
}

func http2Server(t *testing.T, h http.Handler) *httptest.Server {
	server := httptest.NewUnstartedServer(h)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// roots returns the authorities of a server of httptest.
func roots(server *httptest.Server) *x509.CertPool {
	return server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
}

// testCertificate is one for 127.0.0.1 and example.com.
func testCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	server := http2Server(t, http.NotFoundHandler())
	return server.TLS.Certificates[0], roots(server)
}

// No channel dials a private address.
func TestChannels_PrivateAddresses(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			r, to := row{name: "200", behavior: answers(200, "")}, testConnection(5*time.Second)
			c, _ := s.start(t, r, to)
			if got := c.Send(t.Context(), s.push(), 1); got.Outcome != push.Delivered {
				t.Fatalf("where they are allowed: %+v", got)
			}
			to.AllowPrivateAddresses = false
			guarded, requests := s.start(t, r, to)
			got := guarded.Send(t.Context(), s.push(), 1)
			if want := "the host's address is loopback, which is not allowed; see the setting allow_private_addresses"; got.Outcome != push.Refused || got.Final || !strings.HasSuffix(got.Error, want) {
				t.Errorf("got %+v", got)
			}
			if n := requests(); n != 0 {
				t.Errorf("the provider got %d requests", n)
			}
		})
	}
}
