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

// limitListener is a listener that bounds the open connections. At the bound, it closes the longest idle connection for
// the next one. If none is idle, the next one waits until a connection ends, and all others wait in the kernel's queue.
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
	element *list.Element // in idle; nil: the connection is not idle
	framing framing

	halfClosed atomic.Bool // the caller has closed its half
}

func newLimitListener(l net.Listener, connections int) *limitListener {
	return &limitListener{Listener: l, open: make(chan struct{}, connections), closed: make(chan struct{})}
}

// Accept returns the next connection as soon as the bound permits.
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

// Close also ends a waiting Accept.
func (l *limitListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// closeIdle closes the longest idle connection or, if there is none, the next one that becomes idle.
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

// Read also passes the bytes to framing. One goroutine at a time calls it.
func (t *trackedConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	if err == io.EOF {
		t.halfClosed.Store(true) // before net/http gets the error
	}
	t.framing.read(p[:n])
	return n, err
}

// Close makes room for the next connection.
func (t *trackedConn) Close() error {
	defer t.release()
	return t.Conn.Close()
}
