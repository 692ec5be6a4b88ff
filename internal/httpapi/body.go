package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"
)

// The limits of bodies, in bytes.
const (
	maxBody      = 64 << 10
	maxBatchBody = 4 << 20
)

// readBody reads a body of at most limit bytes that is declared as JSON.
func readBody(r *http.Request, limit int64) ([]byte, error) {
	if err := checkMedia(r.Header); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLong(limit)
	}
	var buf bytes.Buffer
	if r.ContentLength > 0 {
		buf.Grow(int(min(r.ContentLength, maxBody)) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(r.Body, limit+1))
	switch {
	case n > limit:
		return nil, tooLong(limit)
	case errors.Is(err, r.Context().Err()) && err != nil:
		return nil, err
	case err != nil:
		return nil, malformed("could not be read to its end")
	}
	body := buf.Bytes()
	if !utf8.Valid(body) {
		return nil, malformed("is not valid UTF-8")
	}
	return body, nil
}

// tooLong refuses a body, whose rest is not read.
func tooLong(limit int64) error {
	return &refusal{
		kind: tooLarge, detail: fmt.Sprintf("the body has more than %d bytes", limit),
		header: http.Header{"Connection": {"close"}},
	}
}

// malformed is a body that is not even JSON.
func malformed(why string) *badRequest {
	e := &badRequest{malformed: true}
	e.add("body", why, nil)
	return e
}

// checkMedia accepts JSON, and bodies that do not say what they are.
func checkMedia(h http.Header) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return &refusal{kind: unsupportedMedia, detail: "send the body without a Content-Encoding"}
	}
	given := h.Get("Content-Type")
	if given == "" || given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	charset := params["charset"]
	if err == nil && (media == "application/json" || media == "application/merge-patch+json") && (charset == "" || strings.EqualFold(charset, "utf-8")) {
		return nil
	}
	return &refusal{kind: unsupportedMedia, detail: "send the body as application/json, in UTF-8"}
}

// start returns a reader that stands before the body's object, or behind a
// value of another kind. A syntax error is for finish to tell.
func start(body []byte, bad *faults) (r *reader, isObject bool) {
	r = newReader(body)
	if r.peek() == '{' {
		return r, true
	}
	if raw := r.value(); r.err == nil {
		bad.add("body", "must be an object", shownJSON(raw))
	}
	return r, false
}

// finish demands that the body ended behind what was read. A syntax error is
// answered together with the faults found outside of the body.
func finish(r *reader, outside *faults) error {
	r.end()
	if r.err == nil {
		return nil
	}
	e := malformed(r.err.Error())
	for _, f := range outside.list {
		if f.Location != "body" && !strings.HasPrefix(f.Location, "body.") {
			e.add(f.Location, f.Message, f.Value)
		}
	}
	return e
}
