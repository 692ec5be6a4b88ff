package channel

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
)

// Connection configures how a channel reaches its provider. Only Name is required.
type Connection struct {
	Name string // of the channel, for errors about its settings

	// Timeout bounds a whole attempt, including everything it needs; default: 10 s.
	Timeout time.Duration

	// AllowPrivateAddresses allows addresses of the provider that are not public, such as loopback.
	AllowPrivateAddresses bool

	Roots *x509.CertPool   // authorities for the provider's certificate; nil: the system's
	Now   func() time.Time // default: time.Now
}

func (c Connection) settled() Connection {
	c.Timeout = cmp.Or(c.Timeout, defaultTimeout)
	if c.Now == nil {
		c.Now = time.Now
	}
	return c
}

func (c Connection) client(http2 bool) *outbound.Client {
	return outbound.New(outbound.Config{
		Timeout: c.Timeout, AllowPrivateAddresses: c.AllowPrivateAddresses, HTTP2: http2, TLS: &tls.Config{RootCAs: c.Roots},
	})
}

// fault returns an error about a setting, without its value.
func (c Connection) fault(setting, wrong string) error {
	return fmt.Errorf("channel %s: %s %s", c.Name, setting, wrong)
}

var errNoURL = errors.New("is not an absolute http or https URL")

// parseURL parses the URL of a provider, so that paths can be joined to it.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errNoURL
	}
	u.Path = cmp.Or(u.Path, "/") // without it, joined paths would be relative
	return u, nil
}

// CloseIdle implements [Connected].
func (w *Webhook) CloseIdle() { w.client.Close() }

// CloseIdle implements [Connected].
func (s *SMS) CloseIdle() { s.client.Close() }

// CloseIdle implements [Connected].
func (f *FCM) CloseIdle() { f.client.Close() }

// CloseIdle implements [Connected].
func (a *APNs) CloseIdle() { a.client.Close() }
