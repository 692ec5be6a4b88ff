package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Page is a page or another file that is the same for all clients. It is compressed once, on the first request that
// accepts it.
type Page struct {
	header http.Header
	plain  []byte // nil: it is kept compressed only
	small  func() []byte
	tag    string
}

// Drawn serves a page that is created on the first request.
func Drawn(draw func() *Page) http.Handler {
	draw = sync.OnceValue(draw)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { draw().ServeHTTP(w, r) })
}

// NewPage returns a page with these headers, given as names and values.
func NewPage(page []byte, headers ...string) *Page {
	return newPage(page, sync.OnceValue(func() []byte { return compressed(page) }), page, headers)
}

func compressed(page []byte) []byte {
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid
	_, _ = w.Write(page)                                      // a buffer takes everything
	_ = w.Close()
	return small.Bytes()
}

// NewPacked returns a page that is already compressed with gzip. All clients receive it compressed: it is too large to
// keep twice, and browsers decompress it.
func NewPacked(small []byte, headers ...string) *Page {
	return newPage(nil, func() []byte { return small }, small, headers)
}

func newPage(plain []byte, small func() []byte, tagged []byte, headers []string) *Page {
	p := &Page{header: http.Header{}, plain: plain, small: small}
	for i := 0; i < len(headers); i += 2 {
		p.header.Set(headers[i], headers[i+1])
	}
	hash := sha256.Sum256(tagged)
	p.tag = base64.RawURLEncoding.EncodeToString(hash[:12])
	return p
}

// ServeHTTP sends the page, unless the caller has it.
func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, values := range p.header {
		h[name] = values
	}
	content, tag := p.plain, p.tag
	if p.plain != nil {
		h.Set("Vary", "Accept-Encoding")
	}
	if p.plain == nil || acceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		content, tag = p.small(), p.tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// acceptsGzip reads Accept-Encoding: gzip, or *, and not with the weight 0.
func acceptsGzip(h http.Header) bool {
	for _, coding := range strings.Split(strings.Join(h["Accept-Encoding"], ","), ",") {
		name, weight, _ := strings.Cut(strings.ToLower(coding), ";")
		name, weight = strings.TrimSpace(name), strings.ReplaceAll(weight, " ", "")
		if name == "gzip" || name == "x-gzip" || name == "*" {
			return weight == "" || strings.Trim(strings.TrimPrefix(weight, "q="), "0.") != ""
		}
	}
	return false
}
