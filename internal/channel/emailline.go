package channel

import (
	"context"
	"errors"
	"net"
	"time"
)

// maxReplies bounds the bytes read from a mail server.
const maxReplies = 64 << 10

var errTooMuch = errors.New("the server sends too much")

// mailLine is a connection to a mail server. It ends with its context, bounds the bytes read, and remembers the time of
// the last write.
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
