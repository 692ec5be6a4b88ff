package channel

import (
	"context"
	"errors"
	"net"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// timelyConn looks at the clock right before it writes: a worker that was
// frozen, and goes on when its attempt counts as lost and is perhaps repeated
// elsewhere, sends nothing any more. Between the look and the write are
// microseconds.
type timelyConn struct {
	net.Conn
	until atomic.Pointer[time.Time] // nil: at any time
	wrote atomic.Bool               // something, since until was set
}

// errHeldUp: it is too late to begin writing. Nothing was written.
var errHeldUp = errors.New("not sent: the worker was held up")

func (c *timelyConn) Write(p []byte) (int, error) {
	until := c.until.Load()
	if until != nil && !c.wrote.Load() && !time.Now().Before(*until) {
		return 0, errHeldUp
	}
	c.wrote.Store(true)
	return c.Conn.Write(p)
}

// dialTimely makes dialed connections timely.
func dialTimely(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &timelyConn{Conn: conn}, nil
	}
}

// limit sets until when the next request may begin to be written.
func limit(got httptrace.GotConnInfo, until time.Time) {
	conn := got.Conn
	if secure, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = secure.NetConn()
	}
	if timely, ok := conn.(*timelyConn); ok {
		timely.wrote.Store(false)
		timely.until.Store(&until)
	}
}
