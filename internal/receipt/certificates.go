package receipt

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
)

// Fetch makes a GET request and returns the body of a 200.
type Fetch func(ctx context.Context, url string) ([]byte, error)

// FetchWith returns a Fetch that uses a client.
func FetchWith(client *outbound.Client) Fetch {
	return func(ctx context.Context, to string) ([]byte, error) {
		u, err := url.Parse(to)
		if err != nil {
			return nil, errors.New("the URL is not readable")
		}
		answer, err := client.Do(ctx, &http.Request{Method: http.MethodGet, URL: u, Header: http.Header{"User-Agent": {"sendquota/1"}}})
		if err != nil {
			return nil, err
		}
		if answer.Status != http.StatusOK {
			return nil, errors.New(outbound.StatusSentence("the server", answer.Status))
		}
		return answer.Body, nil
	}
}

const (
	certificateLife  = 24 * time.Hour // then it is fetched again
	maxCertificates  = 16
	maxFetches       = 10 // in each fetchPeriod
	fetchPeriod      = time.Minute
	maxKey           = 8192 // bits
	certificateBytes = outbound.MaxAnswer
)

// certificates fetches the certificates of SNS and keeps their keys. A caller chooses the URL, so fetches are one at a
// time, and bounded in number.
type certificates struct {
	fetch Fetch
	now   func() time.Time

	fetching chan struct{} // holds a value while a fetch is under way
	mu       sync.Mutex
	kept     map[string]certificate
	begun    time.Time // of the period whose fetches are counted
	fetches  int
}

type certificate struct {
	key   *rsa.PublicKey
	until time.Time
}

func newCertificates(fetch Fetch, now func() time.Time) *certificates {
	return &certificates{fetch: fetch, now: now, fetching: make(chan struct{}, 1), kept: map[string]certificate{}}
}

// key returns the key of the certificate at a URL.
func (c *certificates) key(ctx context.Context, url string) (*rsa.PublicKey, error) {
	if key := c.known(url); key != nil {
		return key, nil
	}
	select {
	case c.fetching <- struct{}{}:
		defer func() { <-c.fetching }()
	case <-ctx.Done():
		return nil, unavailable("another certificate is being fetched")
	}
	if key := c.known(url); key != nil {
		return key, nil
	}
	if !c.mayFetch() {
		return nil, unavailable("too many certificates were fetched in the last minute")
	}
	text, err := c.fetch(ctx, url)
	if err != nil {
		return nil, unavailable("the certificate could not be fetched")
	}
	return c.keep(url, text)
}

func unavailable(why string) error { return fmt.Errorf("%w: %s", ErrUnavailable, why) }

func (c *certificates) known(url string) *rsa.PublicKey {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one, ok := c.kept[url]; ok && c.now().Before(one.until) {
		return one.key
	}
	return nil
}

// mayFetch counts a fetch.
func (c *certificates) mayFetch() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if since := now.Sub(c.begun); since < 0 || since >= fetchPeriod {
		c.begun, c.fetches = now, 0
	}
	c.fetches++
	return c.fetches <= maxFetches
}

// keep reads a certificate and keeps its key. An unreadable one may have been cut off, and is fetched again.
func (c *certificates) keep(url string, text []byte) (*rsa.PublicKey, error) {
	block, _ := pem.Decode(text[:min(len(text), certificateBytes)])
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, unavailable("the certificate is not readable")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, unavailable("the certificate is not readable")
	}
	key, ok := cert.PublicKey.(*rsa.PublicKey)
	now := c.now()
	switch {
	case !ok || key.N.BitLen() < 2048 || key.N.BitLen() > maxKey:
		return nil, refused("the certificate has no RSA key of 2048 to 8192 bits")
	case now.Before(cert.NotBefore) || now.After(cert.NotAfter):
		return nil, refused("the certificate has expired or is not yet valid")
	}
	until := now.Add(certificateLife)
	if cert.NotAfter.Before(until) {
		until = cert.NotAfter
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.kept) >= maxCertificates {
		clear(c.kept)
	}
	c.kept[url] = certificate{key, until}
	return key, nil
}
