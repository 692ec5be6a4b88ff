package outbound

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/sendquota/sendquota/internal/testenv/http2server"
)

// overPipes is a client whose connections to the server are pipes, in a bubble
// of synctest.
func overPipes(t *testing.T, server *http2server.Server) *Client {
	c := New(Config{HTTP2: true, Timeout: 10 * time.Second})
	c.transport.(*http2Transport).dial = func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go server.Serve(newBuffered(theirs))
		return ours, nil
	}
	t.Cleanup(func() {
		c.Close()
		time.Sleep(time.Minute) // until what was under way is over
	})
	return c
}

// buffered is a pipe that takes what is written before it is read.
type buffered struct {
	net.Conn
	out chan []byte
}

func newBuffered(conn net.Conn) *buffered {
	b := &buffered{conn, make(chan []byte, 1024)}
	go func() {
		for p := range b.out {
			if _, err := conn.Write(p); err != nil {
				return
			}
		}
	}()
	return b
}

func (b *buffered) Write(p []byte) (int, error) {
	b.out <- append([]byte(nil), p...)
	return len(p), nil
}

func (b *buffered) Close() error {
	close(b.out)
	return b.Conn.Close()
}

const nowhere = "https://push.example.com"

// TestHTTP2_KeepsConnection however long nothing is sent, and seen to be alive.
func TestHTTP2_KeepsConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http2server.Server{Handle: func(r http2server.Request) { r.Answer(200) }}
		c := overPipes(t, server)
		for _, idle := range []time.Duration{0, 5 * time.Second, time.Hour, 3 * 24 * time.Hour} {
			time.Sleep(idle)
			if f := do(t, c, nowhere); f != nil {
				t.Errorf("after %s: %+v", idle, f)
			}
		}
		if conns := server.Conns(); len(conns) != 1 || conns[0].Heads() != 4 || conns[0].Pings() < 100 {
			t.Errorf("%d connections, %d requests and %d pings on the first", len(conns), conns[0].Heads(), conns[0].Pings())
		}
	})
}

// TestHTTP2_DeadConnection: it says nothing any more, and does not end. No
// request is written to it, whether the next one comes soon or late.
func TestHTTP2_DeadConnection(t *testing.T) {
	for _, idle := range []time.Duration{2 * time.Second, 20 * time.Second, time.Hour} {
		t.Run(idle.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &http2server.Server{Handle: func(r http2server.Request) { r.Answer(200) }}
				c := overPipes(t, server)
				if f := do(t, c, nowhere); f != nil {
					t.Fatal(f)
				}
				server.Conns()[0].FallSilent()
				time.Sleep(idle)
				if f := do(t, c, nowhere); f != nil {
					t.Errorf("%+v", f)
				}
				if conns := server.Conns(); len(conns) != 2 || conns[0].Heads() != 1 || conns[1].Heads() != 1 {
					t.Errorf("%d connections, %d requests on the dead one", len(conns), conns[0].Heads())
				}
			})
		})
	}
}

// TestHTTP2_ServerGaveUp, but does not end, is ended by us.
func TestHTTP2_ServerGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http2server.Server{Handle: func(r http2server.Request) { r.Answer(200) }}
		c := overPipes(t, server)
		if f := do(t, c, nowhere); f != nil {
			t.Fatal(f)
		}
		server.Conns()[0].GoAway(1<<31-1, http2.ErrCodeNo)
		time.Sleep(time.Hour)
		if f := do(t, c, nowhere); f != nil {
			t.Errorf("%+v", f)
		}
		time.Sleep(time.Minute)
		if conns := server.Conns(); len(conns) != 2 || !conns[0].Ended() || conns[1].Ended() {
			t.Errorf("%d connections; the first has ended: %t", len(conns), conns[0].Ended())
		}
	})
}

// TestHTTP2_ServerWithoutPings gets its requests all the same.
func TestHTTP2_ServerWithoutPings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http2server.Server{Handle: func(r http2server.Request) { r.Answer(200) }, IgnorePings: true}
		c := overPipes(t, server)
		for range 3 {
			if f := do(t, c, nowhere); f != nil {
				t.Errorf("%+v", f)
			}
		}
		if n := len(server.Conns()); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

// TestHTTP2_WaitsForSettings: streams that are opened sooner may be
// more than the server takes.
func TestHTTP2_WaitsForSettings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := overPipes(t, nil)
		c.transport.(*http2Transport).dial = func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				for buf := make([]byte, 1024); ; {
					if _, err := theirs.Read(buf); err != nil {
						return
					}
				}
			}()
			return ours, nil
		}
		if f := do(t, c, nowhere); f == nil || f.Sent || f.Reason != "no connection: timed out" {
			t.Errorf("%+v", f)
		}
	})
}
