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

// Connection says how a channel reaches its provider. Only Name is required.
type Connection struct {
	Name string // of the channel, for messages about its settings

	// Timeout bounds a whole attempt, with all that belongs to it; 10 s if it is zero.
	Timeout time.Duration

	// AllowPrivateAddresses lets the provider live at an address that is not public, such as loopback.
	AllowPrivateAddresses bool

	Roots *x509.CertPool   // who may vouch for the provider; nil: the system's authorities
	Now   func() time.Time // time.Now if it is nil
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

// fault is an error about a setting, whose value it does not quote.
func (c Connection) fault(setting, wrong string) error {
	return fmt.Errorf("channel %s: %s %s", c.Name, setting, wrong)
}

var errNoURL = errors.New("is not an absolute http or https URL")

// parseURL reads the URL of a provider, to which paths can be added.
func parseURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errNoURL
	}
	u.Path = cmp.Or(u.Path, "/") // without it, joined paths would be relative
	return u, nil
}
