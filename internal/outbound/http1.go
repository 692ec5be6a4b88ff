package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// writeBuffer holds the head and the body of any request that we make, so that all of it goes out in one write. The
// largest bodies are the messages of webhooks, which came in requests of 64 KiB.
const writeBuffer = 72 << 10

// NewDialer returns a dialer that takes at most timeout. Unless private addresses are allowed, it only dials public
// ones.
func NewDialer(timeout time.Duration, allowPrivate bool) *net.Dialer {
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.ControlContext = theGuard().control
	}
	return dialer
}

// tlsDialer returns a dialer for TLS connections. It takes at most cfg.Timeout, including the handshake.
func tlsDialer(cfg Config, protocols ...string) *tls.Dialer {
	secure := &tls.Config{}
	if cfg.TLS != nil {
		secure = cfg.TLS.Clone()
	}
	secure.NextProtos = protocols
	return &tls.Dialer{NetDialer: NewDialer(cfg.Timeout, cfg.AllowPrivateAddresses), Config: secure}
}

// http1 sends requests over HTTP/1.1. With one request at a time on a connection, a lost connection leaves exactly one
// attempt in doubt.
type http1 struct{ *http.Transport }

// newHTTP1 returns a transport that sends each request at most once, to the host of its URL and nowhere else.
func newHTTP1(cfg Config) *http1 {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http1{&http.Transport{
		Proxy: nil, // a proxy would dial past the guard
		// The transport dials independently of the request's deadline, so the dial needs its own.
		DialContext:     timelyDialer(NewDialer(cfg.Timeout, cfg.AllowPrivateAddresses).DialContext),
		DialTLSContext:  timelyDialer(tlsDialer(cfg).DialContext),
		Protocols:       protocols,
		WriteBufferSize: writeBuffer,
		// Room for a worker's whole concurrency; otherwise each burst dials again.
		MaxIdleConnsPerHost: 512,
		// Many servers close an idle connection after five seconds. A request that meets the closing ends unknown,
		// which costs more than a dial.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // no answer that unpacks to gigabytes
	}}
}

func (t *http1) send(req *http.Request, _ *attempt) (*http.Response, error) {
	return t.RoundTrip(req)
}

func timelyDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &timelyConn{Conn: conn}, nil
	}
}
