// Package faultproxy is a TCP proxy that tests break: it drops replies, so that
// the server has done its work and the client does not know; it cuts
// connections; and it freezes them.
package faultproxy

import (
	"bytes"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// Proxy forwards connections to one server. Its methods may be called
// concurrently.
type Proxy struct {
	listener net.Listener
	server   string
	frozen   sync.RWMutex

	mu       sync.Mutex
	clients  map[net.Conn]bool
	texts    []string // a reply that contains one of these is dropped
	left     int      // how many more replies to drop
	lost     int      // dropped replies
	deafened bool     // all replies are dropped
	severed  bool     // no connection gets through
}

// New starts a proxy to a server, host:port.
func New(server string) (*Proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{listener: listener, server: server, clients: map[net.Conn]bool{}}
	go p.accept()
	return p, nil
}

// Addr returns the address of the proxy, host:port.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Close accepts no more connections. Open ones stay.
func (p *Proxy) Close() error { return p.listener.Close() }

// Lose drops the next replies that contain one of the texts, up to a number, and ends the connection of each. Postgres
// ends a command tag with a zero byte.
func (p *Proxy) Lose(times int, texts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.texts, p.left, p.lost = texts, times, 0
}

// Lost ends a Lose, and returns how many replies it dropped.
func (p *Proxy) Lost() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left = 0
	return p.lost
}

// LoseAll drops every reply for a duration, and then cuts all connections.
func (p *Proxy) LoseAll(d time.Duration) {
	p.set(&p.deafened, true)
	time.Sleep(d)
	p.cut()
	p.set(&p.deafened, false)
}

// Sever cuts all connections and accepts no new ones, until Mend.
func (p *Proxy) Sever() {
	p.set(&p.severed, true)
	p.cut()
}

// Mend ends a Sever.
func (p *Proxy) Mend() { p.set(&p.severed, false) }

// Freeze holds up every byte in both directions, until Thaw.
func (p *Proxy) Freeze() { p.frozen.Lock() }

// Thaw ends a Freeze.
func (p *Proxy) Thaw() { p.frozen.Unlock() }

func (p *Proxy) set(field *bool, yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*field = yes
}

func (p *Proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.clients {
		_ = c.Close()
	}
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.forward(client)
	}
}

func (p *Proxy) forward(client net.Conn) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", p.server, time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	severed := p.severed
	p.clients[client] = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.clients, client)
	}()
	if severed {
		return
	}
	go func() {
		p.copy(server, client, func([]byte) (bool, bool) { return true, true })
		_ = server.Close()
	}()
	p.copy(client, server, p.passes)
}

// copy forwards bytes until one side closes, or until passes ends the
// connection: it is then silent for a while, as a lost one is.
func (p *Proxy) copy(to io.Writer, from io.Reader, passes func([]byte) (pass, lives bool)) {
	for buf := make([]byte, 64<<10); ; {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		p.frozen.RLock()
		pass, lives := passes(buf[:n])
		p.frozen.RUnlock()
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

// passes decides whether a reply passes, and whether its connection lives on.
func (p *Proxy) passes(reply []byte) (pass, lives bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.deafened {
		return false, true
	}
	if p.left == 0 || !slices.ContainsFunc(p.texts, func(text string) bool { return bytes.Contains(reply, []byte(text)) }) {
		return true, true
	}
	p.left--
	p.lost++
	return false, false
}
