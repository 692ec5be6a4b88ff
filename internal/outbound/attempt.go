package outbound

import (
	"context"
	"errors"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// ErrHeldUp: it was too late to begin. Nothing was sent.
var ErrHeldUp = errors.New("not sent: the worker was held up")

// attempt is one outgoing request: its deadline for writing, and its progress.
type attempt struct {
	until     time.Time
	state     atomic.Int32              // untouched, begun or given up
	connected bool                      // it has a connection; set within send
	wire      *wire                     // that connection, if it speaks HTTP/2
	stream    atomic.Uint32             // stream of the wire, once the head has been written
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

// late reports whether it is too late to write anything.
func (a *attempt) late() bool { return !time.Now().Before(a.until) }

// begin is called right before anything of the request is written. So a worker that was frozen sends nothing after its
// attempt counts as lost and may be repeated elsewhere. Only microseconds pass between the check of the clock and the
// write.
func (a *attempt) begin() error {
	if a.late() || !a.state.CompareAndSwap(untouched, begun) && a.state.Load() != begun {
		return ErrHeldUp
	}
	return nil
}

// giveUp reports whether nothing was sent, and prevents that anything is.
func (a *attempt) giveUp() bool { return a.state.CompareAndSwap(untouched, givenUp) }
