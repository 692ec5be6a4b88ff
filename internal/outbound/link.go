package outbound

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// A connection counts as alive for fresh after a sign of life. After that, a request waits for a ping, so that no
	// request is lost to a connection that died silently.
	fresh = time.Second

	// Every poll, the first waiting request checks whether a stream is free, or the server allows more: the state hook
	// of net/http misses a change that comes while it runs.
	poll = 5 * time.Millisecond

	// mostRequests is below the number of streams that a connection can have.
	mostRequests = 1 << 29
)

var errNoStream = errors.New("not sent: no stream of the connection was free in time")

// link holds the connection to one server, at most one at any time.
type link struct {
	t       *http2Transport
	address string
	first   chan struct{}      // held by the first request that waits for a stream
	renewal singleflight.Group // one ping or dial at a time, shared by all requests

	mu      sync.Mutex
	current *shared // nil: none yet
}

// shared is a connection. The mutex of its link guards its fields.
type shared struct {
	*http.ClientConn
	wire  *wire
	alive time.Time // time of the last sign of life
	used  int       // requests
}

// send makes one request. While nothing of it was written, because the connection was closing, it takes the next
// connection, up to the third: a server may close each.
func (l *link) send(req *http.Request, a *attempt) (*http.Response, error) {
	ctx := req.Context()
	for tries := 1; ; tries++ {
		s, err := l.connection(ctx)
		if err != nil {
			return nil, err
		}
		var res *http.Response
		if err = l.reserve(ctx, s); err == nil {
			gotConn(ctx, s.wire)
			res, err = s.RoundTrip(req)
		}
		if err == nil {
			l.saw(s)
		}
		if err == nil || a.headed.Load() || ctx.Err() != nil {
			return res, err
		}
		if l.drop(s); tries == 3 {
			return nil, err
		}
	}
}

// gotConn calls the tracer of the request, as net/http does.
func gotConn(ctx context.Context, w *wire) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: w})
	}
}

// reserve waits for a stream for the following RoundTrip, one request after another.
func (l *link) reserve(ctx context.Context, s *shared) error {
	select {
	case l.first <- struct{}{}:
		defer func() { <-l.first }()
	case <-ctx.Done():
		return errNoStream
	}
	for {
		err := s.Reserve()
		if s.over() { // checked after Reserve: drop closes a connection without streams
			if err == nil {
				s.Release()
			}
			return io.EOF
		}
		if err == nil {
			return nil
		}
		select {
		case <-time.After(poll):
		case <-ctx.Done():
			return errNoStream
		}
	}
}

// connection returns a live connection. Requests that wait for a ping or a dial share it, so that none of them may
// cancel it.
func (l *link) connection(ctx context.Context) (*shared, error) {
	if s := l.ready(); s != nil {
		return s, nil
	}
	select {
	case r := <-l.renewal.DoChan("", func() (any, error) { return l.renew() }):
		s, _ := r.Val.(*shared)
		return s, r.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// ready returns the connection if it was alive a moment ago.
func (l *link) ready() *shared {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.current
	if s == nil || s.used == mostRequests || time.Since(s.alive) > fresh {
		return nil
	}
	s.used++
	return s
}

// saw records a sign of life.
func (l *link) saw(s *shared) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.alive = time.Now()
}

// renew pings the connection. If it is not ready soon, it dials another.
func (l *link) renew() (*shared, error) {
	ctx, cancel := context.WithTimeout(context.Background(), l.t.timeout)
	defer cancel()
	l.mu.Lock()
	s := l.current
	l.mu.Unlock()
	if s != nil && !s.over() && s.ping(ctx, l.t.timeout/4) == nil {
		l.saw(s)
	}
	if s := l.ready(); s != nil {
		return s, nil
	}
	l.drop(s)
	s, err := l.dial(ctx)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = s
	return s, nil
}

// dial returns a connection whose maximum number of streams is known, because streams that are opened sooner may be
// refused. A server sends the number before it answers a ping. A server that answers no pings may still be used.
func (l *link) dial(ctx context.Context) (*shared, error) {
	conn, err := l.t.dial(ctx, l.address)
	if err != nil {
		return nil, err
	}
	w := newWire(conn)
	cc, err := w.clientConn(ctx, l.t.timeout)
	if err != nil {
		w.Close()
		return nil, err
	}
	s := &shared{ClientConn: cc, wire: w}
	for s.ping(ctx, l.t.timeout/4) != nil && !w.greeted.Load() && !s.over() && ctx.Err() == nil {
		continue
	}
	if !w.greeted.Load() || s.over() {
		s.Close()
		return nil, cmp.Or(ctx.Err(), io.EOF)
	}
	s.alive = time.Now()
	return s, nil
}

// drop gives a connection up. It closes when its requests in progress have ended: none takes longer than the timeout.
func (l *link) drop(s *shared) {
	l.mu.Lock()
	known := s != nil && s == l.current
	if known {
		l.current = nil
	}
	l.mu.Unlock()
	if !known {
		return
	}
	s.wire.closing.Store(true)
	closeIdle := func(c *http.ClientConn) {
		if c.InFlight() == 0 {
			go c.Close()
		}
	}
	s.SetStateHook(closeIdle)
	closeIdle(s.ClientConn)
	time.AfterFunc(l.t.timeout, func() { s.Close() })
}

// over reports whether the connection takes no more requests.
func (s *shared) over() bool { return s.wire.over() || s.Err() != nil }

// ping waits for a sign of life.
func (s *shared) ping(ctx context.Context, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.wire.ping(ctx)
}
