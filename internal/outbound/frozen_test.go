package outbound

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/testenv/http2server"
)

// noTimer is a context whose deadline has passed without a signal, as for a worker that was frozen and continues just
// now.
type noTimer struct {
	context.Context
	until time.Time
}

func (c noTimer) Deadline() (time.Time, bool) { return c.until, true }

// frozenAt makes a request that has a second, and freezes for two at a point.
func frozenAt(t *testing.T, c *Client, freeze func(*httptrace.ClientTrace, func()), body int) {
	t.Helper()
	trace := &httptrace.ClientTrace{}
	freeze(trace, func() { time.Sleep(2 * time.Second) })
	req := testPost(t, nowhere)
	if _, ok := c.transport.(*http1); ok {
		req = testPost(t, "http://push.example.com")
	}
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat("x", body))), int64(body)
	_, err := c.Do(httptrace.WithClientTrace(noTimer{t.Context(), time.Now().Add(time.Second)}, trace), req)
	if f, ok := errors.AsType[*Failure](err); !ok || f.Sent || f.Refused || f.Reason != ErrHeldUp.Error() {
		t.Errorf("%v", err)
	}
}

func atGotConn(trace *httptrace.ClientTrace, freeze func()) {
	trace.GotConn = func(httptrace.GotConnInfo) { freeze() }
}

func atWroteHeaders(trace *httptrace.ClientTrace, freeze func()) { trace.WroteHeaders = freeze }

// TestHTTP2_FrozenWorkerSendsNoHead: when it goes on after its time, not a byte of
// the request leaves it, whatever the size of the body.
func TestHTTP2_FrozenWorkerSendsNoHead(t *testing.T) {
	for name, freeze := range map[string]func(*httptrace.ClientTrace, func()){"with a connection": atGotConn, "with the head in the buffer": atWroteHeaders} {
		for _, body := range []int{1, 4000, 64 << 10, 1 << 20} {
			t.Run(name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := &http1Server{}
					c := server.client(t)
					if f := do(t, c, "http://push.example.com"); f != nil {
						t.Fatal(f)
					}
					frozenAt(t, c, freeze, body)
					synctest.Wait()
					if whole, more := server.seen(); len(whole) != 1 || more != 0 {
						t.Errorf("%d requests, and %d bytes", len(whole), more)
					}
				})
			})
		}
	}
	t.Run("over HTTP/2", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			server := &http2server.Server{Handle: func(r http2server.Request) { r.Answer(200) }}
			c := overPipes(t, server)
			if f := do(t, c, nowhere); f != nil {
				t.Fatal(f)
			}
			frozenAt(t, c, atGotConn, 4000)
			synctest.Wait()
			if n := server.Conns()[0].Heads(); n != 1 {
				t.Errorf("%d heads", n)
			}
			frozenAt(t, c, atWroteHeaders, 4000) // its head is written on its own
			synctest.Wait()
			if n := len(server.Requests()); n != 1 {
				t.Errorf("%d whole requests", n)
			}
			if f := do(t, c, nowhere); f != nil || len(server.Conns()) != 1 {
				t.Errorf("the next: %+v, over %d connections", f, len(server.Conns()))
			}
		})
	})
}

// TestHTTP1_OneWrite: all that we send goes out with its head, so that no freeze comes
// between.
func TestHTTP1_OneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http1Server{}
		c := server.client(t)
		sizes := []int{1, 4 << 10, 64 << 10, 70 << 10}
		for _, size := range sizes {
			req := testPost(t, "http://push.example.com")
			body := bytes.Repeat([]byte("x"), size)
			req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(size)
			if _, err := c.Do(t.Context(), req); err != nil {
				t.Fatal(err)
			}
		}
		whole, _ := server.seen()
		if len(whole) != len(sizes) || server.writes != len(sizes) {
			t.Errorf("%d requests in %d writes", len(whole), server.writes)
		}
		for i, size := range sizes {
			if len(whole[i]) != size {
				t.Errorf("%d bytes for %d", len(whole[i]), size)
			}
		}
	})
}

// TestHTTP1_ConnectionEndsBeforeFirstByte has carried nothing.
func TestHTTP1_ConnectionEndsBeforeFirstByte(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &http1Server{}
		c := server.client(t)
		if f := do(t, c, "http://push.example.com"); f != nil {
			t.Fatal(f)
		}
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { info.Conn.Close() }})
		_, err := c.Do(ctx, testPost(t, "http://push.example.com"))
		if f, ok := errors.AsType[*Failure](err); !ok || f.Sent || !strings.HasPrefix(f.Reason, "not sent: ") {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if whole, more := server.seen(); len(whole) != 1 || more != 0 {
			t.Errorf("%d requests, and %d bytes", len(whole), more)
		}
	})
}

// http1Server takes connections that are pipes, and answers every request.
type http1Server struct {
	writes int // by the client

	mu    sync.Mutex
	whole []string // bodies
	bytes int      // read in all
	taken int      // number of bytes of a whole request
}

func (s *http1Server) client(t *testing.T) *Client {
	c := New(Config{Timeout: 10 * time.Second})
	c.transport.(*http1).DialContext = timelyDialer(func(context.Context, string, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go s.serve(theirs)
		return &counted{ours, &s.writes}, nil
	})
	t.Cleanup(func() {
		c.Close()
		synctest.Wait()
	})
	return c
}

// seen returns the bodies of whole requests, and how many bytes came after them.
func (s *http1Server) seen() (whole []string, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole, s.bytes - s.taken
}

func (s *http1Server) serve(conn net.Conn) {
	defer conn.Close()
	for in := bufio.NewReader(io.TeeReader(conn, s)); ; {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.whole, s.taken = append(s.whole, string(body)), s.bytes
		s.mu.Unlock()
		if _, err := io.WriteString(conn, "HTTP/1.1 204 No Content\r\n\r\n"); err != nil {
			return
		}
	}
}

// Write counts what was read.
func (s *http1Server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes += len(p)
	return len(p), nil
}

type counted struct {
	net.Conn
	writes *int
}

func (c *counted) Write(p []byte) (int, error) {
	*c.writes++
	return c.Conn.Write(p)
}
