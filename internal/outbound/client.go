package outbound

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"time"
)

const (
	// MaxAnswer is how many bytes of an answer's body are read.
	MaxAnswer = 64 << 10

	// After the status line of a success the body brings details at most. It is not worth holding a worker for longer.
	bodyWait = time.Second
	// The body of a refusal says whether it is for good.
	refusalWait = 5 * time.Second
)

// Config is what a [Client] is made from. Timeout is required.
type Config struct {
	Timeout               time.Duration // of a whole request, from the dial to the end of the answer
	AllowPrivateAddresses bool          // also to addresses that are not public, such as loopback
	HTTP2                 bool          // HTTP/2 over TLS and nothing else, over one connection for each server; otherwise HTTP/1.1
	TLS                   *tls.Config   // nil: the system's authorities
}

// Client makes requests. It is safe for concurrent use.
type Client struct {
	timeout   time.Duration
	transport transport
}

// transport sends one request, at most once.
type transport interface {
	send(req *http.Request, a *attempt) (*http.Response, error)
	CloseIdleConnections()
}

// New returns a client made from cfg.
func New(cfg Config) *Client {
	if cfg.HTTP2 {
		return &Client{cfg.Timeout, newHTTP2(cfg)}
	}
	return &Client{cfg.Timeout, newHTTP1(cfg)}
}

// Answer is what came back. The status line alone makes it one: a body that is broken, slow or endless is cut off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte    // at most MaxAnswer
	Handed time.Time // when the whole request had been written, at the latest
}

// Do makes a request, once, which must have a body that can be read once: its GetBody must be nil. It ends within the
// client's timeout, or earlier when ctx ends. An error is a [Failure].
func (c *Client) Do(ctx context.Context, req *http.Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	a := newAttempt(ctx)
	// The bare transport, not a client: it follows no redirect.
	res, err := c.transport.send(req.WithContext(a.traced(ctx)), a)
	if err != nil {
		return Answer{}, a.failure(ctx, err)
	}
	handed := time.Now() // at the latest: the answer may come before the transport says that it has written
	if at := a.handed.Load(); at != nil {
		handed = *at
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: readBody(res, cancel), Handed: handed}, nil
}

// Close gives up the idle connections. Requests under way go on.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// readBody returns what can be had of the body, and reads it to its end where that is near, so that the connection
// can be used again. It calls cancel if the body takes too long.
func readBody(res *http.Response, cancel context.CancelFunc) []byte {
	defer res.Body.Close()
	if res.Body == http.NoBody || res.StatusCode < 200 {
		return nil
	}
	wait := bodyWait
	if res.StatusCode >= 300 {
		wait = refusalWait
	}
	defer time.AfterFunc(wait, cancel).Stop()
	body, _ := io.ReadAll(io.LimitReader(res.Body, MaxAnswer)) // the status line alone counts
	return body
}
