package outbound

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// ErrHeldUp says that it was too late to begin. Nothing was sent.
var ErrHeldUp = errors.New("not sent: the worker was held up")

// attempt is one request on its way out: until when it may be written, and how far it came.
type attempt struct {
	until     time.Time
	state     atomic.Int32              // untouched, begun or given up
	connected bool                      // it has a connection; set within send
	wire      *wire                     // that connection, if it speaks HTTP/2
	stream    atomic.Uint32             // of the wire, when the head has been written
	headed    atomic.Bool               // its head has been written
	handed    atomic.Pointer[time.Time] // when all of it had been written
}

const (
	untouched = iota
	begun
	givenUp
)

func newAttempt(ctx context.Context) *attempt {
	until, _ := ctx.Deadline()
	return &attempt{until: until}
}

// traced follows the attempt through the transport.
func (a *attempt) traced(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			a.connected = true
			switch conn := info.Conn.(type) {
			case *timelyConn:
				conn.attempt.Store(a)
			case *wire:
				a.wire = conn
			}
		},
		WroteHeaders: func() { // before another head is written
			if a.wire != nil {
				a.stream.Store(a.wire.head.Load())
			}
			a.headed.Store(true)
		},
		WroteRequest: func(httptrace.WroteRequestInfo) {
			now := time.Now()
			a.handed.Store(&now)
		},
	})
}

// late says whether it is too late to write anything.
func (a *attempt) late() bool { return !time.Now().Before(a.until) }

// begin is asked right before anything of the request is written: a worker that was frozen, and goes on when its
// attempt counts as lost and is perhaps repeated elsewhere, sends nothing any more. Between the look at the clock and
// the write are microseconds.
func (a *attempt) begin() error {
	if a.late() || !a.state.CompareAndSwap(untouched, begun) && a.state.Load() != begun {
		return ErrHeldUp
	}
	return nil
}

// giveUp reports whether nothing was sent, and sees to it that nothing is.
func (a *attempt) giveUp() bool { return a.state.CompareAndSwap(untouched, givenUp) }
