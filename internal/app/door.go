package app

import (
	"container/list"
	"errors"
	"net"
	"net/http"
	"sync"
)

// door is a listener that lets so many connections in at a time. When it is
// full, the one that has been idle longest has to go for the next; if none is
// idle, the next waits for one to end, and all others in the kernel's queue.
type door struct {
	net.Listener
	places chan struct{} // holds one for each connection
	closed chan struct{}
	close  sync.Once

	mu    sync.Mutex
	idle  list.List // of *guest, the longest first
	wants bool      // somebody waits for a place
}

// guest is a connection that went through the door.
type guest struct {
	net.Conn
	leave   func()
	seat    *list.Element // in idle; nil: it is not idle
	framing framing
}

func newDoor(l net.Listener, places int) *door {
	return &door{Listener: l, places: make(chan struct{}, places), closed: make(chan struct{})}
}

// Accept returns the next connection as soon as there is a place for it.
func (d *door) Accept() (net.Conn, error) {
	c, err := d.Listener.Accept()
	if err != nil {
		return nil, err
	}
	select {
	case d.places <- struct{}{}:
	default:
		d.makeRoom()
		select {
		case d.places <- struct{}{}:
		case <-d.closed:
			return nil, errors.Join(net.ErrClosed, c.Close())
		}
		d.satisfied()
	}
	return &guest{Conn: c, leave: sync.OnceFunc(func() { <-d.places })}, nil
}

// Close stops those who wait, too.
func (d *door) Close() error {
	d.close.Do(func() { close(d.closed) })
	return d.Listener.Close()
}

// makeRoom closes the connection that has been idle longest, or has the next
// one that becomes idle closed.
func (d *door) makeRoom() {
	d.mu.Lock()
	longest := d.idle.Front()
	d.wants = longest == nil
	if longest != nil {
		d.stand(longest.Value.(*guest))
	}
	d.mu.Unlock()
	if longest != nil {
		_ = longest.Value.(*guest).Close()
	}
}

func (d *door) satisfied() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wants = false
}

// watch is for http.Server, which tells it what connections do.
func (d *door) watch(c net.Conn, state http.ConnState) {
	g := c.(*guest)
	d.mu.Lock()
	d.stand(g)
	goes := false
	if state == http.StateIdle {
		if goes = d.wants; !goes {
			g.seat = d.idle.PushBack(g)
		}
		d.wants = false
	}
	d.mu.Unlock()
	if goes {
		_ = g.Close()
	}
}

// stand takes a guest off the idle ones.
func (d *door) stand(g *guest) {
	if g.seat != nil {
		d.idle.Remove(g.seat)
		g.seat = nil
	}
}

// Read is called by one goroutine at a time.
func (g *guest) Read(p []byte) (int, error) {
	n, err := g.Conn.Read(p)
	g.framing.read(p[:n])
	return n, err
}

// Close gives the place back.
func (g *guest) Close() error {
	defer g.leave()
	return g.Conn.Close()
}
