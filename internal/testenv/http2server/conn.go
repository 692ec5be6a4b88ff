package http2server

import (
	"bytes"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// Request is one that was read to its end.
type Request struct {
	Conn   *Conn
	Stream uint32
	Header http.Header // with :method, :path and so on
	Body   string
}

// Conn is one connection. Its methods may be called from anywhere.
type Conn struct {
	Number int // 0 for the first of the server
	conn   net.Conn
	server *Server
	frames *http2.Framer

	heads, pings  atomic.Int64
	silent, ended atomic.Bool

	mu   sync.Mutex // guards writing
	hbuf bytes.Buffer
	henc *hpack.Encoder

	under map[uint32]*Request // whose body is still on its way
}

func newConn(s *Server, number int, conn net.Conn) *Conn {
	c := &Conn{Number: number, conn: conn, server: s, frames: http2.NewFramer(conn, conn), under: map[uint32]*Request{}}
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.henc = hpack.NewEncoder(&c.hbuf)
	return c
}

// Heads returns how many HEADERS frames came.
func (c *Conn) Heads() int { return int(c.heads.Load()) }

// Pings returns how many PING frames came.
func (c *Conn) Pings() int { return int(c.pings.Load()) }

// Ended reports whether the client or the server has ended the connection.
func (c *Conn) Ended() bool { return c.ended.Load() }

// FallSilent keeps the connection open, as a dead one is: frames are read, and
// none is sent any more.
func (c *Conn) FallSilent() { c.silent.Store(true) }

// next reads a frame, and does what the protocol demands.
func (c *Conn) next() error {
	f, err := c.frames.ReadFrame()
	if err != nil {
		return err
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			c.write(func() error { return c.frames.WriteSettingsAck() })
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			c.pings.Add(1)
		}
		if !f.IsAck() && !c.server.IgnorePings {
			c.write(func() error { return c.frames.WritePing(true, f.Data) })
		}
	case *http2.MetaHeadersFrame:
		c.heads.Add(1)
		r := &Request{Conn: c, Stream: f.StreamID, Header: http.Header{}}
		for _, field := range f.Fields {
			r.Header.Add(field.Name, field.Value)
		}
		c.under[f.StreamID] = r
		c.came(r, f.StreamEnded())
	case *http2.DataFrame:
		if n := f.Length; n > 0 {
			c.write(func() error { return c.frames.WriteWindowUpdate(0, n) })
		}
		if r := c.under[f.StreamID]; r != nil {
			r.Body += string(f.Data())
			c.came(r, f.StreamEnded())
		}
	case *http2.RSTStreamFrame:
		delete(c.under, f.StreamID)
	}
	return nil
}

func (c *Conn) came(r *Request, whole bool) {
	if whole && !c.silent.Load() {
		delete(c.under, r.Stream)
		c.server.got(*r)
	}
}

func (c *Conn) write(frame func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.silent.Load() {
		_ = frame() // the client may be gone
	}
}

// WriteSettings says settings, later ones as well.
func (c *Conn) WriteSettings(settings ...http2.Setting) {
	c.write(func() error { return c.frames.WriteSettings(settings...) })
}

// GoAway names the last stream that is or may be processed.
func (c *Conn) GoAway(last uint32, code http2.ErrCode) {
	c.write(func() error { return c.frames.WriteGoAway(last, code, nil) })
}

// Close ends the connection at once.
func (c *Conn) Close() { c.conn.Close() }

// Answer answers with a status and nothing else.
func (r Request) Answer(status int) {
	c := r.Conn
	c.write(func() error {
		c.hbuf.Reset()
		_ = c.henc.WriteField(hpack.HeaderField{Name: ":status", Value: strconv.Itoa(status)})
		return c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: r.Stream, BlockFragment: c.hbuf.Bytes(), EndStream: true, EndHeaders: true})
	})
}

// Reset ends the stream with a code, such as REFUSED_STREAM.
func (r Request) Reset(code http2.ErrCode) {
	r.Conn.write(func() error { return r.Conn.frames.WriteRSTStream(r.Stream, code) })
}
