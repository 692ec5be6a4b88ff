package outbound

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"
)

// goodbye bounds the time for closing TLS properly, with a server that may not read any more.
const goodbye = 250 * time.Millisecond

// noGoAway means that the server has not named a last stream.
const noGoAway = -1

// wire is a connection of HTTP/2 below net/http. It reads in the frames what an [http.ClientConn] does not report: the
// stream of a request, the last stream of a GOAWAY, and the arrival of the settings. It also sends pings.
type wire struct {
	net.Conn
	in frames // followed by Read only, which net/http calls in one goroutine

	// Frames that net/http has received, and handles before it reads on.
	hasSettings, hasPong bool

	greeted atomic.Bool   // net/http has handled the server's settings
	pongs   chan struct{} // net/http has handled the answer to a ping
	closing atomic.Bool   // the connection takes no more requests
	last    atomic.Int64  // the last stream that the server may have processed, or noGoAway
	ended   chan struct{} // closed when the server sends no more
	end     func()

	writing sync.Mutex // guards the next two
	out     frames
	pinging bool // a ping waits for the end of a frame

	head atomic.Uint32 // stream of the last written HEADERS
}

func newWire(conn net.Conn) *wire {
	w := &wire{Conn: conn, pongs: make(chan struct{}, 1), ended: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.ended) })
	w.last.Store(noGoAway)
	w.in.each = w.received
	w.out.skip, w.out.each = len(http2.ClientPreface), w.sent
	return w
}

// clientConn returns a connection of net/http.
func (w *wire) clientConn(ctx context.Context, timeout time.Duration) (*http.ClientConn, error) {
	t := &http.Transport{
		// The wire speaks TLS, which net/http does not see. It treats the connection as one without, and speaks HTTP/2
		// without negotiation.
		DialContext:            func(context.Context, string, string) (net.Conn, error) { return w, nil },
		Protocols:              new(http.Protocols),
		DisableCompression:     true, // no answer that unpacks to gigabytes
		MaxResponseHeaderBytes: 64 << 10,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: pingAfter, WriteByteTimeout: timeout / 4},
	}
	t.Protocols.SetUnencryptedHTTP2(true)
	return t.NewClientConn(ctx, "http", "wire:0")
}

// Read is called by net/http when it has handled everything that was read before.
func (w *wire) Read(p []byte) (int, error) {
	if w.hasSettings {
		w.greeted.Store(true)
	}
	if w.hasPong {
		w.hasPong = false
		select {
		case w.pongs <- struct{}{}:
		default:
		}
	}
	n, err := w.Conn.Read(p)
	w.in.follow(p[:n])
	if err != nil {
		w.end()
	}
	return n, err
}

// received notes a frame of the server, before net/http handles it.
func (w *wire) received(head http2.FrameHeader, payload []byte) {
	switch {
	case head.Type == http2.FrameSettings:
		w.hasSettings = w.hasSettings || !head.Flags.Has(http2.FlagSettingsAck)
	case head.Type == http2.FramePing:
		w.hasPong = w.hasPong || head.Flags.Has(http2.FlagPingAck)
	case head.Type == http2.FrameGoAway && len(payload) >= 4:
		w.last.Store(int64(binary.BigEndian.Uint32(payload) &^ (1 << 31)))
		w.closing.Store(true)
	case head.Type == http2.FrameRSTStream && len(payload) >= 4:
		if http2.ErrCode(binary.BigEndian.Uint32(payload)) == http2.ErrCodeProtocol {
			w.closing.Store(true) // net/http makes no more requests on it
		}
	}
}

// Write is called by net/http. A waiting ping follows the last frame.
func (w *wire) Write(p []byte) (int, error) {
	w.writing.Lock()
	defer w.writing.Unlock()
	n, err := w.Conn.Write(p)
	w.out.follow(p[:n])
	w.sendPing()
	return n, err
}

func (w *wire) sent(head http2.FrameHeader, _ []byte) {
	if head.Type == http2.FrameHeaders {
		w.head.Store(head.StreamID)
	}
}

var pingFrame = func() []byte {
	var frame bytes.Buffer
	_ = http2.NewFramer(&frame, nil).WritePing(false, [8]byte{'s', 'i', 'g', 'n', 'l', 'i', 'f', 'e'})
	return frame.Bytes()
}()

// sendPing sends the waiting ping, unless a frame is being written.
func (w *wire) sendPing() {
	if !w.pinging || !w.out.between() {
		return
	}
	w.pinging = false
	if _, err := w.Conn.Write(pingFrame); err != nil {
		w.Close() // part of it may have been written
	}
}

// ping asks the server for a sign of life and waits for it.
func (w *wire) ping(ctx context.Context) error {
	select {
	case <-w.pongs: // a late one
	default:
	}
	go func() {
		w.writing.Lock()
		defer w.writing.Unlock()
		w.pinging = true
		w.sendPing()
	}()
	select {
	case <-w.pongs:
		return nil
	case <-w.ended:
		return io.EOF
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over reports whether the connection takes no more requests.
func (w *wire) over() bool {
	select {
	case <-w.ended:
		return true
	default:
		return w.closing.Load()
	}
}

// left reports whether the server announced the end of the connection, and ended it.
func (w *wire) left() bool {
	select {
	case <-w.ended:
		return w.last.Load() != noGoAway
	default:
		return false
	}
}

// unprocessed reports whether the server has announced that it has not processed a stream, and never will: the stream
// is above the last stream of its GOAWAY.
func (w *wire) unprocessed(stream uint32) bool {
	last := w.last.Load()
	return stream != 0 && last != noGoAway && int64(stream) > last
}

// Close ends the connection.
func (w *wire) Close() error {
	if secure, ok := w.Conn.(*tls.Conn); ok {
		defer time.AfterFunc(goodbye, func() { secure.NetConn().Close() }).Stop()
	}
	return w.Conn.Close()
}
