package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Dialer returns a dialer that takes at most timeout and, unless private
// addresses are allowed, reaches public ones only.
func Dialer(timeout time.Duration, allowPrivate bool) func(ctx context.Context, network, address string) (net.Conn, error) {
	return newDialer(timeout, allowPrivate).DialContext
}

func newDialer(timeout time.Duration, allowPrivate bool) *net.Dialer {
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.ControlContext = theGuard().control
	}
	return dialer
}

// newTransport returns a transport that sends each request at most once, to
// where the name leads and nowhere else.
func newTransport(cfg Config) *http.Transport {
	protocols := new(http.Protocols)
	if cfg.HTTP2 {
		protocols.SetHTTP2(true)
	} else {
		// With one request at a time on a connection, a lost connection leaves
		// exactly one attempt in the dark. HTTP/2 has rules of its own for sending
		// again after GOAWAY or a refused stream, though not once a body was read.
		protocols.SetHTTP1(true)
	}
	var secure *tls.Config
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	return &http.Transport{
		Proxy: nil, // a proxy would dial past the guard
		// The transport dials apart from the request's own deadline, so that the
		// dial needs one as well.
		DialContext:         Dialer(cfg.Timeout, cfg.AllowPrivateAddresses),
		Protocols:           protocols,
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: cfg.Timeout,
		// Room for a worker's whole concurrency, else each burst dials anew.
		MaxIdleConnsPerHost: 512,
		// Many servers close an idle connection after five seconds. A request
		// that meets the closing ends unknown, which costs more than a dial.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // no answer that unpacks to gigabytes
	}
}
