package channel

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// subject is a channel under the test that all of them pass.
type subject struct {
	name    string
	mail    bool // it speaks SMTP; all others HTTP
	coded   bool // a refusal is for good only if it has a code that says so
	to      string
	differs map[string]Result // what it makes of a row, where that is something else
	start   func(t *testing.T, r row) (c Channel, requests func() int)
}

func (s subject) push() push.Push {
	p := testPush()
	p.To = s.to
	return p
}

// httpSubject is the start of a channel that posts to the URL of a provider.
func httpSubject(build func(t *testing.T, url string, c Connection) Channel) func(*testing.T, row) (Channel, func() int) {
	return func(t *testing.T, r row) (Channel, func() int) {
		p := newProvider(t, r.behavior)
		return build(t, p.url(), testConnection(r.timeout)), func() int { requests, _ := p.seen(); return len(requests) }
	}
}

func testConnection(timeout time.Duration) Connection {
	return Connection{Name: "push", Timeout: timeout, AllowPrivateAddresses: true, Now: testNow}
}

func subjects() []subject {
	return []subject{
		{name: "webhook", to: markTo, start: httpSubject(func(t *testing.T, url string, c Connection) Channel {
			return newTestWebhook(t, WebhookConfig{URL: url + "/send?token=" + markQuery, Timeout: c.Timeout, Now: c.Now})
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

func startEmail(t *testing.T, r row) (Channel, func() int) {
	script := mailScript{"dot": mailAnswers()[r.name]}
	if r.behavior == nil {
		script = mailScript{"greeting": mailAnswers()[r.name]}
	}
	server := newMailServer(t, mailSetup{script: script})
	// A conversation over TLS needs longer than a request to begin.
	e := newTestEmail(t, server, EmailConfig{Connection: testConnection(2 * r.timeout)})
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

// roots are who vouches for a server of httptest.
func roots(server *httptest.Server) *x509.CertPool {
	return server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
}

// testCertificate is one for 127.0.0.1 and example.com.
func testCertificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	server := http2Server(t, http.NotFoundHandler())
	return server.TLS.Certificates[0], roots(server)
}

// Whether a provider's address is private is looked at for each channel.
func TestNoChannelDialsPrivateAddresses(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.name, func(t *testing.T) {
			c, requests := s.start(t, row{behavior: answers(200, ""), name: "200", timeout: 5 * time.Second})
			if got := c.Send(t.Context(), s.push(), 1); got.Outcome != push.Delivered {
				t.Fatalf("where they are allowed: %+v", got)
			}
			guarded := withoutPrivate(t, c)
			got := guarded.Send(t.Context(), s.push(), 1)
			if want := "the host's address is loopback, which is not allowed; see the setting allow_private_addresses"; got.Outcome != push.Refused || got.Final || len(got.Error) < len(want) || got.Error[len(got.Error)-len(want):] != want {
				t.Errorf("got %+v", got)
			}
			if n := requests(); n != 1 {
				t.Errorf("the provider got %d requests", n)
			}
		})
	}
}

// withoutPrivate makes a channel again as an operator has it who did not allow
// private addresses.
func withoutPrivate(t *testing.T, c Channel) Channel {
	var (
		again Channel
		err   error
	)
	switch c := c.(type) {
	case *Webhook:
		again, err = NewWebhook(WebhookConfig{Name: "push", URL: c.url.String()})
	case *SMS:
		cfg := c.cfg
		cfg.AllowPrivateAddresses = false
		again, err = NewSMS(cfg)
	case *FCM:
		cfg := c.cfg
		cfg.AllowPrivateAddresses = false
		again, err = NewFCM(cfg)
	case *APNs:
		cfg := c.cfg
		cfg.AllowPrivateAddresses = false
		again, err = NewAPNs(cfg)
	case *Email:
		cfg := c.cfg
		cfg.AllowPrivateAddresses = false
		again, err = NewEmail(cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return again
}
