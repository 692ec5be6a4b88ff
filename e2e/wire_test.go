package e2e

import (
	"bytes"
	"io"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"
)

// wire is a way to Postgres that can swallow replies, and then cut the
// connection: the server has done what it was asked for, but nobody is told.
// It can also hold up all that comes and goes.
type wire struct {
	url    string // of the database, by way of the wire
	server string

	mu       sync.Mutex
	tags     []string // a reply with one of these command tags is swallowed
	left     int      // so many times
	swallows int      // so many were
	frozen   sync.RWMutex
}

func newWire(t *testing.T, database string) *wire {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	w := &wire{server: u.Host}
	u.Host = listener.Addr().String()
	w.url = u.String()
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go w.carry(client)
		}
	}()
	return w
}

func (w *wire) carry(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", w.server)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		w.copy(server, client, func([]byte) bool { return true })
		_ = server.Close()
	}()
	w.copy(client, server, w.passes)
}

// copy carries bytes until one side hangs up, or they may not pass: then it is
// silent for a while before it returns.
func (w *wire) copy(to io.Writer, from io.Reader, passes func([]byte) bool) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.frozen.RLock()
		ok := passes(buf[:n])
		w.frozen.RUnlock()
		if !ok {
			time.Sleep(100 * time.Millisecond)
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *wire) passes(reply []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left == 0 || !slices.ContainsFunc(w.tags, func(tag string) bool { return bytes.Contains(reply, []byte(tag+"\x00")) }) {
		return true
	}
	w.left--
	w.swallows++
	return false
}

// swallow swallows the next so many replies with one of the command tags.
func (w *wire) swallow(times int, tags ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tags, w.left, w.swallows = tags, times, 0
}

// swallowed ends the swallowing, and returns how many replies it took.
func (w *wire) swallowed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
	return w.swallows
}
