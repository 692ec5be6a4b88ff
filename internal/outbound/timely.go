package outbound

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// timelyConn is a connection of HTTP/1.1, which carries one request at a time. It calls begin of the request's attempt
// before each write.
type timelyConn struct {
	net.Conn
	attempt atomic.Pointer[attempt]
}

// Write is called by the transport, in its own goroutine. A first write that fails before its first byte has sent
// nothing.
func (c *timelyConn) Write(p []byte) (int, error) {
	a := c.attempt.Load()
	if a == nil {
		return c.Conn.Write(p)
	}
	first := a.state.Load() == untouched
	if err := a.begin(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Write(p)
	if first && n == 0 {
		a.state.Store(untouched)
	}
	return n, err
}

// timely makes a request of HTTP/2, whose connection carries many, call begin of its attempt: before the head, by the
// context, and before the body. If only the head was sent, no server acts on a request that is canceled before its
// body.
func timely(req *http.Request, a *attempt) *http.Request {
	req = req.WithContext(&timelyContext{req.Context(), a})
	req.Body = io.NopCloser(&timelyBody{req.Body, a}) // a retry on another connection may need it
	return req
}

type timelyBody struct {
	io.Reader
	attempt *attempt
}

// Read is called by the transport right before it writes the bytes.
func (b *timelyBody) Read(p []byte) (int, error) {
	if err := b.attempt.begin(); err != nil {
		return 0, err
	}
	return b.Reader.Read(p)
}

// timelyContext ends by the clock. Other contexts end by the runtime's timers, which may fire a moment after a frozen
// worker continues. The transport checks it last before it writes the head.
type timelyContext struct {
	context.Context
	attempt *attempt
}

// over is the Done channel of a context that has ended.
var over = func() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

func (c *timelyContext) Done() <-chan struct{} {
	if c.attempt.late() {
		return over
	}
	return c.Context.Done()
}

func (c *timelyContext) Err() error {
	if err := c.Context.Err(); err != nil || !c.attempt.late() {
		return err
	}
	return context.DeadlineExceeded
}
