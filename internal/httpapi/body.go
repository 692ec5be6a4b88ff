package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// The limits of bodies, in bytes.
const (
	maxBody      = 64 << 10
	maxBatchBody = 4 << 20
)

// maxDrained and drainTime bound how much of the rest of a body that is too large is read, and for how long. Callers
// that write everything before they read get the answer then; others would see the connection break.
const (
	maxDrained = 8 << 20
	drainTime  = 2 * time.Second
)

// body reads a body of at most limit bytes that is declared as JSON, within the memory that there is.
func (c *call) body(limit int64) ([]byte, error) {
	if err := checkMedia(c.r.Header); err != nil {
		return nil, err
	}
	if c.r.ContentLength > limit {
		if !strings.EqualFold(c.r.Header.Get("Expect"), "100-continue") { // else the caller holds the body back
			c.drain(limit + maxDrained)
		}
		return nil, tooLong(limit)
	}
	return c.readWithin(limit, func() ([]byte, error) { return c.read(limit) })
}

// read reads a body that is not known to be too long.
func (c *call) read(limit int64) ([]byte, error) {
	var buf bytes.Buffer
	if c.r.ContentLength > 0 {
		buf.Grow(int(c.r.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(c.r.Body, limit+1))
	switch {
	case n > limit:
		c.drain(maxDrained)
		return nil, tooLong(limit)
	case errors.Is(err, c.r.Context().Err()) && err != nil:
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

// drain reads and drops at most so many bytes of the body.
func (c *call) drain(most int64) {
	if err := http.NewResponseController(c.w).SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return // what cannot be bounded is left alone
	}
	_, _ = io.CopyN(io.Discard, c.r.Body, most)
}

// tooLong refuses a body, whose rest is left unread if it is very long.
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
	if err := checkCoding(h); err != nil {
		return err
	}
	given := h.Get("Content-Type")
	if given == "" || given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err == nil && (media == "application/json" || media == "application/merge-patch+json") && isUTF8(params["charset"]) {
		return nil
	}
	return &refusal{kind: unsupportedMedia, detail: "send the body as application/json, in UTF-8"}
}

// checkCoding refuses what is compressed, and says what would be taken: RFC 9110, 15.5.16.
func checkCoding(h http.Header) error {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return &refusal{
				kind: unsupportedMedia, detail: "send the body without a Content-Encoding",
				header: http.Header{"Accept-Encoding": {"identity"}},
			}
		}
	}
	return nil
}

// isUTF8 reports whether a charset is UTF-8, by one of its names, or not given.
func isUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// object has the object read that a body of at most limit bytes is. What is no JSON ends the request, together with the
// errors outside of the body.
func (c *call) object(limit int64, outside *fieldErrors, read func(*reader)) (body []byte, err error) {
	if body, err = c.body(limit); err != nil {
		return nil, err
	}
	parse := func() error { return readWhole(body, outside, read) }
	if len(body) > maxBody {
		return body, c.compute(parse)
	}
	return body, parse()
}

// readWhole demands that the body is JSON, and ends behind what is read.
func readWhole(body []byte, outside *fieldErrors, read func(*reader)) error {
	r := newReader(body)
	read(r)
	if r.end(); r.err == nil {
		return nil
	}
	e := malformed(r.err.Error())
	e.addAll("", *outside)
	return e
}

// noBody refuses whatever a body asks for. It returns all that is wrong with the request.
func (c *call) noBody(bad *fieldErrors) error {
	if c.r.ContentLength == 0 {
		return bad.err()
	}
	body, err := c.body(maxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		var found fieldErrors
		if err := readWhole(body, bad, func(r *reader) { nothing.read(r, &struct{}{}, &found) }); err != nil {
			return err
		}
		bad.addAll("body", found)
	}
	return bad.err()
}
