package outbound

import (
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// ErrHeldUp says that it was too late to begin. Nothing was sent.
var ErrHeldUp = errors.New("not sent: the worker was held up")

// timelyBody looks at the clock right before the request is written, which is
// when its body is read: a worker that was frozen, and goes on when its attempt
// counts as lost and is perhaps repeated elsewhere, sends nothing any more. Over
// HTTP/2 the head may be gone by then, but no server acts on a request that is
// broken off before its body. Between the look and the write are microseconds.
type timelyBody struct {
	io.ReadCloser
	until time.Time
	state atomic.Int32 // untouched, begun or given up
}

const (
	untouched = iota
	begun
	givenUp
)

// Read is called by the transport, in a goroutine of its own.
func (b *timelyBody) Read(p []byte) (int, error) {
	if b.state.Load() == untouched && time.Now().Before(b.until) {
		b.state.CompareAndSwap(untouched, begun)
	}
	if b.state.Load() != begun {
		return 0, ErrHeldUp
	}
	return b.ReadCloser.Read(p)
}

// giveUp reports whether nothing was sent, and sees to it that nothing is.
func (b *timelyBody) giveUp() bool { return b.state.CompareAndSwap(untouched, givenUp) }
