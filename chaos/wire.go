package main

import (
	"io"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"time"
)

// wire is the way from the programs to a server. It can lose replies: the
// server has done what it was asked for, and nobody hears of it.
type wire struct {
	listener net.Listener
	server   string
	mute     atomic.Bool // replies are lost

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// newWire returns a wire to the server of a URL, and the URL by way of it.
func newWire(server string) (*wire, string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", err
	}
	w := &wire{server: u.Host, conns: map[net.Conn]bool{}}
	if w.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return nil, "", err
	}
	u.Host = w.listener.Addr().String()
	go w.accept()
	return w, u.String(), nil
}

func (w *wire) close() { _ = w.listener.Close() }

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		go w.carry(client)
	}
}

func (w *wire) carry(client net.Conn) {
	defer w.forget(client)
	server, err := net.DialTimeout("tcp", w.server, time.Second)
	if err != nil {
		return
	}
	w.remember(client)
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if err != nil {
			return
		}
		if w.mute.Load() {
			continue
		}
		if _, err := client.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (w *wire) remember(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
}

func (w *wire) forget(c net.Conn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
	_ = c.Close()
}

// loseReplies loses every reply for so long, and then cuts the connections.
func (w *wire) loseReplies(d time.Duration) {
	w.mute.Store(true)
	time.Sleep(d)
	w.mu.Lock()
	for c := range w.conns {
		_ = c.Close()
	}
	w.mu.Unlock()
	w.mute.Store(false)
}
