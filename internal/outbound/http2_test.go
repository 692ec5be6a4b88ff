package outbound

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/sendquota/sendquota/internal/testenv/http2server"
)

func streams(n uint32) http2.Setting {
	return http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: n}
}

func newTestHTTP2(t *testing.T, s *http2server.Server, timeout time.Duration) *Client {
	c := New(Config{HTTP2: true, Timeout: timeout, AllowPrivateAddresses: true, TLS: &tls.Config{RootCAs: s.Roots}})
	t.Cleanup(c.Close)
	return c
}

func testPost(t *testing.T, to string) *http.Request {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return Post(u, "application/json", []byte(`{"a":1}`))
}

// do makes a request, and returns nil if it was answered.
func do(t *testing.T, c *Client, to string) *Failure {
	_, err := c.Do(t.Context(), testPost(t, to))
	if err == nil {
		return nil
	}
	f, ok := errors.AsType[*Failure](err)
	if !ok {
		t.Errorf("%T: %v", err, err)
		return &Failure{Sent: true}
	}
	return f
}

// TestHTTP2_Unprocessed: a request that the server reports as not processed surely was
// not (RFC 9113, 6.8 and 8.7). Any other may have been. None is sent again.
func TestHTTP2_Unprocessed(t *testing.T) {
	const processed, all = 1, 1<<31 - 1 // the stream before, and every stream
	reset := func(code http2.ErrCode) func(http2server.Request) {
		return func(r http2server.Request) { r.Reset(code) }
	}
	leave := func(code http2.ErrCode, lasts ...uint32) func(http2server.Request) {
		return func(r http2server.Request) {
			for _, last := range lasts {
				r.Conn.GoAway(last, code)
			}
			r.Conn.Close()
		}
	}
	for name, tt := range map[string]struct {
		do      func(http2server.Request)
		refused bool
	}{
		"the stream is refused":                          {reset(http2.ErrCodeRefusedStream), true},
		"above the last stream":                          {leave(http2.ErrCodeNo, processed), true},
		"above the last stream, in two steps":            {leave(http2.ErrCodeNo, all, processed), true},
		"above the last stream, with an error":           {leave(http2.ErrCodeInternal, processed), true},
		"above the last stream, in two steps, and error": {leave(http2.ErrCodeEnhanceYourCalm, all, processed), true},
		"there is no last stream":                        {leave(http2.ErrCodeNo, 0), true},
		"at the last stream, and cut off":                {leave(http2.ErrCodeNo, 3), false},
		"below the last stream, and cut off":             {leave(http2.ErrCodeNo, 5), false},
		"at the last stream, with an error, and cut off": {leave(http2.ErrCodeInternal, 3), false},
		"the first of two steps, and cut off":            {leave(http2.ErrCodeNo, all), false},
		"cut off":                                        {func(r http2server.Request) { r.Conn.Close() }, false},
		"CANCEL":                                         {reset(http2.ErrCodeCancel), false},
		"NO_ERROR":                                       {reset(http2.ErrCodeNo), false},
		"PROTOCOL_ERROR":                                 {reset(http2.ErrCodeProtocol), false},
		"INTERNAL_ERROR":                                 {reset(http2.ErrCodeInternal), false},
		"ENHANCE_YOUR_CALM":                              {reset(http2.ErrCodeEnhanceYourCalm), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := http2server.Listen(t, func(r http2server.Request) {
				if r.Conn.Number > 0 || r.Stream != 3 {
					r.Answer(200)
				} else {
					tt.do(r)
				}
			})
			c := newTestHTTP2(t, server, 20*time.Second)
			if f := do(t, c, server.URL); f != nil {
				t.Fatal(f)
			}
			f := do(t, c, server.URL)
			if f == nil || f.Sent == tt.refused || f.Refused != tt.refused {
				t.Errorf("%+v", f)
			}
			if cut := strings.Contains(name, "cut off"); f != nil && cut != (f.Reason == "no answer: the server closed the connection") {
				t.Errorf("%+v", f)
			}
			if n := len(server.Requests()); n != 2 {
				t.Errorf("%d requests for two attempts", n)
			}
			if f := do(t, c, server.URL); f != nil {
				t.Errorf("the next: %+v", f)
			}
		})
	}
}

// TestHTTP2_GoAwayBeforeFirstStream, where the server minds something about
// us and says so: net/http has words of its own for it.
func TestHTTP2_GoAwayBeforeFirstStream(t *testing.T) {
	server := http2server.Listen(t, func(r http2server.Request) {
		r.Conn.GoAway(0, http2.ErrCodeInadequateSecurity)
		r.Conn.Close()
	})
	if f := do(t, newTestHTTP2(t, server, 20*time.Second), server.URL); f == nil || f.Sent || !f.Refused {
		t.Errorf("%+v", f)
	}
}

// TestHTTP2_NextConnection when the server closes the one there
// is: nothing of them was sent. The one that it names as the last is in doubt.
func TestHTTP2_NextConnection(t *testing.T) {
	const waiting = 20
	cut := make(chan http2server.Request, 1)
	server := http2server.Listen(t, func(r http2server.Request) {
		if r.Conn.Number > 0 {
			r.Answer(200)
			return
		}
		r.Conn.GoAway(r.Stream, http2.ErrCodeNo)
		cut <- r
	}, streams(1))
	c := newTestHTTP2(t, server, 20*time.Second)
	failures := make(chan *Failure, 1+waiting)
	var all sync.WaitGroup
	for range 1 + waiting {
		all.Go(func() { failures <- do(t, c, server.URL) })
	}
	for range waiting {
		if f := <-failures; f != nil {
			t.Errorf("%+v", f)
		}
	}
	(<-cut).Conn.Close()
	if f := <-failures; f == nil || !f.Sent {
		t.Errorf("the one that was cut off: %+v", f)
	}
	all.Wait()
	if conns, requests := len(server.Conns()), len(server.Requests()); conns != 2 || requests != 1+waiting {
		t.Errorf("%d requests on %d connections", requests, conns)
	}
}

// TestHTTP2_ServerClosesEachConnection after one request is not asked for ever.
func TestHTTP2_ServerClosesEachConnection(t *testing.T) {
	const all = 30
	server := http2server.Listen(t, func(r http2server.Request) {
		r.Conn.GoAway(r.Stream, http2.ErrCodeNo)
		r.Answer(200)
	}, streams(1))
	c := newTestHTTP2(t, server, 20*time.Second)
	var answered atomic.Int64
	var group sync.WaitGroup
	for range all {
		group.Go(func() {
			if f := do(t, c, server.URL); f == nil {
				answered.Add(1)
			} else if f.Sent {
				t.Errorf("%+v", f)
			}
		})
	}
	group.Wait()
	if conns, n := len(server.Conns()), int(answered.Load()); conns > all/2 || n == 0 || n > conns {
		t.Errorf("%d connections, %d answers", conns, n)
	}
}

// TestHTTP2_NoConnection is not asked for ever either.
func TestHTTP2_NoConnection(t *testing.T) {
	server := http2server.Listen(t, nil)
	server.Greet = func(c *http2server.Conn) { c.GoAway(0, http2.ErrCodeNo) }
	f := do(t, newTestHTTP2(t, server, 20*time.Second), server.URL)
	if n := len(server.Conns()); f == nil || f.Sent || n > 3 {
		t.Errorf("%d connections for one attempt: %+v", n, f)
	}
}

// TestHTTP2_SharedStreams: however many requests at once, there is one connection,
// and as many streams as the server allows. It may allow more at any time.
func TestHTTP2_SharedStreams(t *testing.T) {
	const most = 100
	for name, raise := range map[string]bool{"the server allows more, with all answers yet to come": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			var held []http2server.Request
			server := http2server.Listen(t, func(r http2server.Request) {
				if !raise {
					r.Answer(200)
					return
				}
				if held = append(held, r); len(held) == 1 {
					r.Conn.WriteSettings(streams(most))
				}
				for i := 0; len(held) == most && i < most; i++ {
					held[i].Answer(200)
				}
			}, streams(1))
			c := newTestHTTP2(t, server, 20*time.Second)
			var all sync.WaitGroup
			for range most {
				all.Go(func() {
					if f := do(t, c, server.URL); f != nil {
						t.Errorf("%+v", f)
					}
				})
			}
			all.Wait()
			if n := len(server.Conns()); n != 1 {
				t.Errorf("%d connections", n)
			}
		})
	}
}

// TestHTTP2_NoStreamInTime: a request that never gets a stream is not sent, and waits no longer than its deadline.
func TestHTTP2_NoStreamInTime(t *testing.T) {
	begun := make(chan struct{})
	server := http2server.Listen(t, func(http2server.Request) { close(begun) }, streams(1))
	c := newTestHTTP2(t, server, 20*time.Second)
	first := make(chan *Failure)
	go func() { first <- do(t, c, server.URL) }()
	<-begun
	shorter := &Client{time.Second, c.transport} // over the same connections
	if f := do(t, shorter, server.URL); f == nil || f.Sent || f.Reason != errNoStream.Error() {
		t.Errorf("%+v", f)
	}
	conns := server.Conns()
	if len(conns) != 1 || conns[0].Heads() != 1 {
		t.Errorf("%d connections, %d heads", len(conns), conns[0].Heads())
	}
	conns[0].Close()
	if f := <-first; f == nil || !f.Sent {
		t.Errorf("the one that has the stream: %+v", f)
	}
}

// TestHTTP2_SharedDialFailure: a server that cannot be reached is not asked once
// for each request.
func TestHTTP2_SharedDialFailure(t *testing.T) {
	server := http2server.Listen(t, nil)
	c := New(Config{HTTP2: true, Timeout: 20 * time.Second, AllowPrivateAddresses: true}) // whose authorities do not know it
	defer c.Close()
	const all = 50
	var group sync.WaitGroup
	start := make(chan struct{})
	for range all {
		group.Go(func() {
			<-start
			if f := do(t, c, server.URL); f == nil || f.Sent || !strings.Contains(f.Reason, "certificate") {
				t.Errorf("%+v", f)
			}
		})
	}
	close(start)
	group.Wait()
	if n := len(server.Conns()); n >= all/2 {
		t.Errorf("%d connections", n)
	}
}

// BenchmarkHTTP2 counts the server's work as well: both ends share the processors.
func BenchmarkHTTP2(b *testing.B) {
	server := http2server.Listen(b, func(r http2server.Request) { r.Answer(200) }, streams(1000))
	c := New(Config{HTTP2: true, Timeout: 20 * time.Second, AllowPrivateAddresses: true, TLS: &tls.Config{RootCAs: server.Roots}})
	defer c.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := c.Do(b.Context(), Post(to, "application/json", []byte(`{"a":1}`))); err != nil {
				b.Error(err)
			}
		}
	})
}
