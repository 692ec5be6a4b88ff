package httpapi

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// static is a page that is the same for everybody. It is made and compressed once.
type static struct {
	header       http.Header
	plain, small []byte
	tag          string
}

// newStatic returns a page with these headers, given as names and values.
func newStatic(page []byte, headers ...string) *static {
	s := &static{header: http.Header{}, plain: page}
	for i := 0; i < len(headers); i += 2 {
		s.header.Set(headers[i], headers[i+1])
	}
	var small bytes.Buffer
	w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid
	_, _ = w.Write(page)                                      // a buffer takes everything
	_ = w.Close()
	s.small = small.Bytes()
	hash := sha256.Sum256(page)
	s.tag = base64.RawURLEncoding.EncodeToString(hash[:12])
	return s
}

// ServeHTTP sends the page, unless the caller has it.
func (s *static) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	for name, values := range s.header {
		h[name] = values
	}
	h.Set("Vary", "Accept-Encoding")
	page, tag := s.plain, s.tag
	if acceptsGzip(r.Header) {
		h.Set("Content-Encoding", "gzip")
		page, tag = s.small, s.tag+"-gzip"
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(page))
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
