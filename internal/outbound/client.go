package outbound

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"time"
)

const (
	// MaxAnswer bounds the bytes read of an answer's body.
	MaxAnswer = 64 << 10

	// After a success the body contains details at most. Do not hold a worker longer for them.
	bodyWait = time.Second
	// The body of a refusal shows whether it is permanent.
	refusalWait = 5 * time.Second
)

// Config configures a [Client]. Timeout is required.
type Config struct {
	Timeout               time.Duration // of a whole request, from the dial to the end of the answer
	AllowPrivateAddresses bool          // allow addresses that are not public, such as loopback
	HTTP2                 bool          // only HTTP/2 over TLS, over one connection for each server; otherwise HTTP/1.1
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

// New returns a client.
func New(cfg Config) *Client {
	if cfg.HTTP2 {
		return &Client{cfg.Timeout, newHTTP2(cfg)}
	}
	return &Client{cfg.Timeout, newHTTP1(cfg)}
}

// Answer is an answer. The status line alone is enough: a body that is broken, slow or endless is cut off.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte    // at most MaxAnswer
	Handed time.Time // upper bound of the time when the whole request had been written
}

// Do makes a request once. Its body must be readable only once: GetBody must be nil. Do ends within the client's
// timeout, or earlier when ctx ends. Its errors are of type [Failure].
func (c *Client) Do(ctx context.Context, req *http.Request) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	a := newAttempt(ctx)
	// The bare transport, not a client, because it follows no redirect.
	res, err := c.transport.send(req.WithContext(a.traced(ctx)), a)
	if err != nil {
		return Answer{}, a.failure(ctx, err)
	}
	handed := time.Now() // an upper bound: the answer may come before the transport reports the write
	if at := a.handed.Load(); at != nil {
		handed = *at
	}
	return Answer{Status: res.StatusCode, Header: res.Header, Body: readBody(res, cancel), Handed: handed}, nil
}

// Close closes the idle connections. Requests in progress continue.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// readBody returns the available part of the body, and reads it to its end if that is near, so that the connection can
// be used again. It calls cancel if the body takes too long.
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
	body, _ := io.ReadAll(io.LimitReader(res.Body, MaxAnswer)) // the status line is enough
	return body
}
