package outbound

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
)

// A connection that is silent for pingAfter is pinged in the background. That also keeps NAT and firewalls from
// forgetting it.
const pingAfter = 15 * time.Second

var errNotHTTP2 = errors.New("the server does not speak HTTP/2")

// http2Transport sends requests over HTTP/2, all requests to a server over one connection. A transport of net/http
// would dial another connection when no stream is free, and close an idle one. Providers take many connections for an
// attack, and want one to be kept.
type http2Transport struct {
	timeout time.Duration
	dial    func(ctx context.Context, address string) (net.Conn, error)

	mu    sync.Mutex
	links map[string]*link // by address
}

func newHTTP2(cfg Config) *http2Transport {
	dialer := tlsDialer(cfg, http2.NextProtoTLS)
	return &http2Transport{
		timeout: cfg.Timeout,
		dial: func(ctx context.Context, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, "tcp", address)
			if err != nil {
				return nil, err
			}
			if conn.(*tls.Conn).ConnectionState().NegotiatedProtocol != http2.NextProtoTLS {
				conn.Close()
				return nil, errNotHTTP2
			}
			return conn, nil
		},
		links: map[string]*link{},
	}
}

func (t *http2Transport) send(req *http.Request, a *attempt) (*http.Response, error) {
	defer req.Body.Close()
	if req.URL.Scheme != "https" {
		return nil, errNotHTTP2
	}
	address := net.JoinHostPort(req.URL.Hostname(), cmp.Or(req.URL.Port(), "443"))
	return t.link(address).send(timely(req, a), a)
}

func (t *http2Transport) link(address string) *link {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.links[address] == nil {
		t.links[address] = &link{t: t, address: address, first: make(chan struct{}, 1)}
	}
	return t.links[address]
}

// CloseIdleConnections closes all connections, if busy after their last request.
func (t *http2Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.links {
		l.mu.Lock()
		s := l.current
		l.mu.Unlock()
		l.drop(s)
	}
}
