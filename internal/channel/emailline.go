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

// mailLine is a connection to a mail server. It ends with the context of an attempt, bounds the bytes that this reads, and remembers
// the time of the last write.
type mailLine struct {
	net.Conn
	left  int // bytes that may still be read
	wrote time.Time
	stop  func() bool
}

func newMailLine(ctx context.Context, conn net.Conn) *mailLine {
	l := &mailLine{Conn: conn}
	l.attach(ctx)
	return l
}

// attach has the connection end with a context.
func (l *mailLine) attach(ctx context.Context) {
	l.left = maxReplies
	if until, ok := ctx.Deadline(); ok {
		_ = l.SetDeadline(until)
	}
	l.stop = context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })
}

// detach ends the bond with the context. It returns false if the context has ended first: then the connection is of no use.
func (l *mailLine) detach() bool {
	if !l.stop() {
		return false
	}
	_ = l.SetDeadline(time.Time{})
	return true
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
