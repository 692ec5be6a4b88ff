// Package wire is a way to a server that tests can break: it loses replies, so
// that the server has done what it was asked for and nobody hears of it, and it
// holds up all that comes and goes.
package wire

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Wire carries connections to one server. Its methods may be called
// concurrently.
type Wire struct {
	listener net.Listener
	server   string
	frozen   sync.RWMutex

	mu       sync.Mutex
	clients  map[net.Conn]bool
	tags     []string // a reply with one of these texts is lost
	left     int      // so many times
	lost     int      // so many were
	deafened bool     // all replies are lost
	severed  bool     // nothing comes through
}

// New returns a wire to a server, host:port.
func New(server string) (*Wire, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &Wire{listener: listener, server: server, clients: map[net.Conn]bool{}}
	go w.accept()
	return w, nil
}

// Addr is where the wire begins, host:port.
func (w *Wire) Addr() string { return w.listener.Addr().String() }

// Close takes no more connections. Those that are there stay.
func (w *Wire) Close() error { return w.listener.Close() }

// Lose loses the next so many replies that contain one of the texts, and after
// each, its connection. Postgres ends a command tag with a zero byte.
func (w *Wire) Lose(times int, texts ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tags, w.left, w.lost = texts, times, 0
}

// Lost ends the losing, and returns how many replies were lost since Lose.
func (w *Wire) Lost() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = 0
	return w.lost
}

// LoseAll loses every reply for so long, and then all connections.
func (w *Wire) LoseAll(d time.Duration) {
	w.deafen(true)
	time.Sleep(d)
	w.hangUp(false)
	w.deafen(false)
}

// Sever ends all connections, and takes no new ones, until Mend.
func (w *Wire) Sever() { w.hangUp(true) }

// Mend ends a Sever.
func (w *Wire) Mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.severed = false
}

func (w *Wire) hangUp(severed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.severed = severed
	for c := range w.clients {
		_ = c.Close()
	}
}

func (w *Wire) deafen(yes bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deafened = yes
}

// Freeze holds up all that comes and goes, until Thaw.
func (w *Wire) Freeze() { w.frozen.Lock() }

// Thaw ends a Freeze.
func (w *Wire) Thaw() { w.frozen.Unlock() }

func (w *Wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.carry(client)
	}
}

func (w *Wire) carry(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", w.server, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	defer w.forget(client)
	if !w.know(client) {
		return
	}
	go func() {
		w.copy(server, client, func([]byte) (bool, bool) { return true, true })
		_ = server.Close()
	}()
	w.copy(client, server, w.passes)
}

func (w *Wire) know(client net.Conn) (welcome bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients[client] = true
	return !w.severed
}

func (w *Wire) forget(client net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.clients, client)
}

// copy carries bytes until one side hangs up, or the connection is to be lost
// with them: then it is silent for a while before it returns.
func (w *Wire) copy(to io.Writer, from io.Reader, passes func([]byte) (pass, lives bool)) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		w.frozen.RLock()
		pass, lives := passes(buf[:n])
		w.frozen.RUnlock()
		if !lives {
			time.Sleep(100 * time.Millisecond)
			return
		}
		if !pass {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// passes decides about a reply, and whether its connection lives on.
func (w *Wire) passes(reply []byte) (pass, lives bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.deafened {
		return false, true
	}
	if w.left == 0 || !slices.ContainsFunc(w.tags, func(text string) bool { return bytes.Contains(reply, []byte(text)) }) {
		return true, true
	}
	w.left--
	w.lost++
	return false, false
}
