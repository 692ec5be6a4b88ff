package app

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// framing reads the bytes of a connection, and finds heads of requests that define the end of their body in two ways.
// net/http silently chooses one of them. A proxy in front may choose the other, and take a part of the body for the next
// request, or the reverse (request smuggling). So the connection must end with the answer: RFC 9112, 6.1.
//
// It recognises lines and blank lines only, not where bodies begin and end. So the lines of a body count with the lines of
// the next head. Bodies seldom have a line that resembles one of these headers. If one does, the caller only has to connect
// again.
type framing struct {
	line     [len("transfer-encoding:")]byte // the beginning of a line, without the white space before it
	n        int                             // the number of bytes in line
	indented bool                            // the line begins with white space, and so continues the previous one
	framing  bool                            // the previous line is one of the two headers

	lengths, encodings int // headers since the last blank line

	ambiguous atomic.Bool
	encoded   atomic.Int64 // heads with Transfer-Encoding since the begin
	chunked   int64        // requests that net/http read as chunked
}

// read processes bytes that the connection received.
func (f *framing) read(p []byte) {
	for {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			f.add(p)
			return
		}
		if f.n > 0 || f.indented || end == 0 || bytes.IndexByte(firstBytes, p[0]) >= 0 {
			f.add(p[:end])
			f.endLine()
		} else {
			f.framing = false
		}
		p = p[end+1:]
	}
}

// firstBytes are the first bytes of lines that may be one of the two headers, continue one, or be blank.
var firstBytes = []byte("cCtT \t\r")

func (f *framing) add(p []byte) {
	if f.n == 0 && len(p) > 0 && (p[0] == ' ' || p[0] == '\t') {
		f.indented = true
		p = bytes.TrimLeft(p, " \t")
	}
	f.n += copy(f.line[f.n:], p)
}

func (f *framing) endLine() {
	line, folded, before := f.line[:f.n], f.indented, f.framing
	f.n, f.indented, f.framing = 0, false, false
	name, _, header := bytes.Cut(line, []byte(":"))
	switch {
	case !folded && (len(line) == 0 || len(line) == 1 && line[0] == '\r'):
		if f.encodings > 0 {
			f.encoded.Add(1)
		}
		f.lengths, f.encodings = 0, 0
		return
	case header && bytes.EqualFold(name, []byte("content-length")):
		f.lengths++
		f.framing = true
	case header && bytes.EqualFold(name, []byte("transfer-encoding")):
		f.encodings++
		f.framing = true
	}
	if f.lengths+f.encodings > 1 || folded && (before || f.framing) {
		f.ambiguous.Store(true)
	}
}

// clear reports whether every reader finds the end of this request, and of all received ones, at the same place as
// net/http. It is called once for each request, in their order.
func (f *framing) clear(r *http.Request) bool {
	if len(r.TransferEncoding) > 0 {
		f.chunked++
	}
	ignored := !r.ProtoAtLeast(1, 1) && f.encoded.Load() > f.chunked // HTTP/1.0 has no Transfer-Encoding
	return !f.ambiguous.Load() && !ignored
}

type connKey struct{}

// withConn is the ConnContext of an http.Server. It adds the connection to the context of its requests.
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// endAmbiguous closes the connection after the answer to an ambiguous request.
func endAmbiguous(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.Context().Value(connKey{}).(*trackedConn).framing.clear(r) {
			w.Header().Set("Connection", "close")
		}
		h.ServeHTTP(w, r)
	})
}
