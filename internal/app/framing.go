package app

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"sync/atomic"
)

// framing watches what comes over a connection for heads of requests that say
// in two ways where their body ends. net/http chooses one of them and says
// nothing; a proxy in front may choose the other, and take a part of the body
// for the next request, or the reverse (request smuggling). So the connection
// must end with the answer: RFC 9112, 6.1.
//
// It knows lines and blank lines only, not where bodies begin and end. So the
// lines of a body count with those of the next head. Bodies seldom have a line
// that looks like one of these headers, and then all that happens is that the
// caller has to connect again.
type framing struct {
	line     [len("transfer-encoding:")]byte // the beginning of a line, without the white space before it
	n        int                             // how much of it there is
	indented bool                            // there was white space: the line continues the one before
	framing  bool                            // the line before is one of the headers that matter

	lengths, encodings int // headers since the last blank line

	ambiguous atomic.Bool
	encoded   atomic.Int64 // heads with Transfer-Encoding so far
	chunked   int64        // and of these what net/http took for that
}

// read takes what the connection brought.
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

// firstBytes begin the lines that are worth a look.
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

// clear reports whether every reader finds the end of this request, and of those
// that have come with it, where net/http finds it. It is asked once for each
// request, in their order.
func (f *framing) clear(r *http.Request) bool {
	if len(r.TransferEncoding) > 0 {
		f.chunked++
	}
	ignored := !r.ProtoAtLeast(1, 1) && f.encoded.Load() > f.chunked // HTTP/1.0 knows no Transfer-Encoding
	return !f.ambiguous.Load() && !ignored
}

type connKey struct{}

// withConn is the ConnContext of an http.Server: requests know their connection.
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
