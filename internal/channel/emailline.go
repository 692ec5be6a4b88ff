package channel

import (
	"context"
	"errors"
	"net"
	"time"
)

// maxReplies is how many bytes of a mail server's replies are read.
const maxReplies = 64 << 10

var errTooMuch = errors.New("the server says too much")

// mailLine is a connection to a mail server: it ends with its context, reads no endless reply, and remembers when
// something was last written.
type mailLine struct {
	net.Conn
	left  int // bytes that may still be read
	wrote time.Time
	stop  func() bool
}

func newMailLine(ctx context.Context, conn net.Conn) *mailLine {
	if until, ok := ctx.Deadline(); ok {
		_ = conn.SetDeadline(until)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return &mailLine{Conn: conn, left: maxReplies, stop: stop}
}

func (l *mailLine) Read(p []byte) (int, error) {
	if l.left <= 0 {
		return 0, errTooMuch
	}
	n, err := l.Conn.Read(p)
	l.left -= n
	return n, err
}

func (l *mailLine) Write(p []byte) (int, error) {
	n, err := l.Conn.Write(p)
	l.wrote = time.Now()
	return n, err
}

func (l *mailLine) Close() error {
	l.stop()
	return l.Conn.Close()
}
