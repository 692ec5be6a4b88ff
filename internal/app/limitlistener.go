package app

import (
	"container/list"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

// limitListener is a listener that bounds the open connections. When all are open, it closes the one that has been
// idle longest for the next; if none is idle, the next waits for one to end, and all others in the kernel's queue.
type limitListener struct {
	net.Listener
	open   chan struct{} // holds one element for each connection
	closed chan struct{}
	close  sync.Once

	mu        sync.Mutex
	idle      list.List // of *trackedConn, the longest first
	closeNext bool      // Accept waits: the next connection that becomes idle is closed
}

// trackedConn is a connection of a limitListener.
type trackedConn struct {
	net.Conn
	release func()
	element *list.Element // in idle; nil: it is not idle
	framing framing

	halfClosed atomic.Bool // the caller sends nothing more
}

func newLimitListener(l net.Listener, connections int) *limitListener {
	return &limitListener{Listener: l, open: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept returns the next connection as soon as it may be open.
func (l *limitListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case l.open <- struct{}{}:
	default:
		l.closeIdle()
		select {
		case l.open <- struct{}{}:
		case <-l.closed:
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
		l.mu.Lock()
		l.closeNext = false
		l.mu.Unlock()
	}
	return &trackedConn{Conn: c, release: sync.OnceFunc(func() { <-l.open })}, nil
}

// Close also ends an Accept that waits.
func (l *limitListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// closeIdle closes the connection that has been idle longest, or else the next one that becomes idle.
func (l *limitListener) closeIdle() {
	l.mu.Lock()
	longest := l.idle.Front()
	l.closeNext = longest == nil
	if longest != nil {
		l.notIdle(longest.Value.(*trackedConn))
	}
	l.mu.Unlock()
	if longest != nil {
		_ = longest.Value.(*trackedConn).Close()
	}
}

// watch is the ConnState of an http.Server.
func (l *limitListener) watch(c net.Conn, state http.ConnState) {
	t := c.(*trackedConn)
	l.mu.Lock()
	l.notIdle(t)
	closes := false
	if state == http.StateIdle {
		if closes = l.closeNext; !closes {
			t.element = l.idle.PushBack(t)
		}
		l.closeNext = false
	}
	l.mu.Unlock()
	if closes {
		_ = t.Close()
	}
}

func (l *limitListener) notIdle(t *trackedConn) {
	if t.element != nil {
		l.idle.Remove(t.element)
		t.element = nil
	}
}

// Read is called by one goroutine at a time.
func (t *trackedConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if err == io.EOF {
		t.halfClosed.Store(true) // before net/http knows it
	}
	t.framing.read(p[:n])
	return n, err
}

// Close lets the next connection in.
func (t *trackedConn) Close() error {
	defer t.release()
	return t.Conn.Close()
}
