package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

const (
	// MaxAnswer is how many bytes of an answer's body are read.
	MaxAnswer = 64 << 10

	// After a status line the body brings details at most. It is not worth
	// holding a worker for longer.
	bodyWait = time.Second
)

// Config is what a [Client] is made from. Timeout is required.
type Config struct {
	Timeout               time.Duration // of a whole request, from the dial to the end of the answer
	AllowPrivateAddresses bool          // also to addresses that are not public, such as loopback
	HTTP2                 bool          // HTTP/2 over TLS and nothing else; otherwise HTTP/1.1
	TLS                   *tls.Config   // nil: the system's authorities
}

// Client makes requests. It is safe for concurrent use.
type Client struct {
	timeout   time.Duration
	transport *http.Transport
}

// New returns a client made from cfg.
func New(cfg Config) *Client {
	return &Client{timeout: cfg.Timeout, transport: newTransport(cfg)}
}

// Answer is what came back. The status line alone makes it one: a body that is
// broken, slow or endless is cut off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte    // at most MaxAnswer
	Handed time.Time // when the whole request had been written; zero: not known
}

// Failure is a request without an answer.
type Failure struct {
	Sent     bool   // the request may have arrived; otherwise it surely has not
	NotFound bool   // the host has no address, or none that may be dialed
	Reason   string // from a fixed list: safe to show to the operator
}

func (f *Failure) Error() string { return f.Reason }

// Do makes a request, once, which must have a body that can be read once: its
// GetBody must be nil. It ends within the client's timeout, or earlier when ctx
// ends. An error is a [Failure].
func (c *Client) Do(ctx context.Context, req *http.Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	// GotConn is called in this goroutine, within RoundTrip; WroteRequest in another.
	connected := false
	var handed atomic.Pointer[time.Time]
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected = true },
		WroteRequest: func(httptrace.WroteRequestInfo) {
			now := time.Now()
			handed.Store(&now)
		},
	})
	until, _ := ctx.Deadline()
	req = req.WithContext(ctx)
	body := &timelyBody{ReadCloser: req.Body, until: until}
	req.Body = body
	// The bare transport, not a client: it follows no redirect.
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return Answer{}, failure(err, connected, body.giveUp() && (ctx.Err() != nil || errors.Is(err, ErrHeldUp)))
	}
	answer := Answer{Status: res.StatusCode, Header: res.Header, Body: readBody(res, cancel)}
	if at := handed.Load(); at != nil {
		answer.Handed = *at
	}
	return answer, nil
}

// Close gives up the idle connections. Requests under way go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// failure names what went wrong. Without a connection nothing was sent; with
// one, the request may have arrived, unless it was too late to begin.
func failure(err error, connected, tooLate bool) *Failure {
	switch {
	case !connected:
		return &Failure{NotFound: notFound(err), Reason: "no connection: " + Reason(err)}
	case tooLate:
		return &Failure{Reason: ErrHeldUp.Error()}
	}
	return &Failure{Sent: true, Reason: "no answer: " + Reason(err)}
}

func notFound(err error) bool {
	var (
		forbidden *forbiddenAddressError
		dns       *net.DNSError
	)
	return errors.As(err, &forbidden) || errors.As(err, &dns) && dns.IsNotFound
}

// readBody returns what can be had of the body, and reads it to its end where
// that is near, so that the connection can be used again. It calls cancel if the
// body takes too long.
func readBody(res *http.Response, cancel context.CancelFunc) []byte {
	defer res.Body.Close()
	if res.Body == http.NoBody || res.StatusCode < 200 {
		return nil
	}
	timer := time.AfterFunc(bodyWait, cancel)
	defer timer.Stop()
	body, _ := io.ReadAll(io.LimitReader(res.Body, MaxAnswer)) // the status line alone counts
	return body
}
