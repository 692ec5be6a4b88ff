package channel

import (
	"net"
	"net/http"
	"time"
)

// newTransport returns a transport that sends each request at most once, to
// where the name leads and nowhere else.
func newTransport(timeout time.Duration, allowPrivate bool) *http.Transport {
	// The transport dials apart from the request's own deadline, so that the
	// dial needs one as well.
	dialer := &net.Dialer{Timeout: timeout}
	if !allowPrivate {
		dialer.ControlContext = newGuard().control
	}
	// HTTP/1.1 only: with one request at a time on a connection, a lost
	// connection leaves exactly one attempt in the dark, and "no connection was
	// got" means "nothing was sent". HTTP/2 has rules of its own for sending
	// again after GOAWAY or a refused stream.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Transport{
		Proxy:               nil, // a proxy would dial past the guard
		DialContext:         dialTimely(dialer.DialContext),
		Protocols:           protocols,
		TLSHandshakeTimeout: timeout,
		// Room for a worker's whole concurrency, else each burst dials anew.
		MaxIdleConnsPerHost: 512,
		// Many servers close an idle connection after five seconds. A request
		// that meets the closing ends unknown, which costs more than a dial.
		IdleConnTimeout:        4 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		DisableCompression:     true, // no answer that unpacks to gigabytes
	}
}
