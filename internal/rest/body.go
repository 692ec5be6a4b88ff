package rest

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

// The largest bodies, in bytes.
const (
	MaxBody      = 64 << 10
	MaxBatchBody = 4 << 20
)

// MaxDrained and drainTime bound the bytes and the time of reading the rest of a body that is too large. Callers
// that write everything before they read then get the answer instead of a broken connection.
const (
	MaxDrained = 8 << 20
	drainTime  = 2 * time.Second
)

// Body reads a body of at most limit bytes that is declared as JSON. It waits for memory.
func (c *Call) Body(limit int64) ([]byte, error) {
	if err := checkMedia(c.Request.Header); err != nil {
		return nil, err
	}
	if c.Request.ContentLength > limit {
		if !strings.EqualFold(c.Request.Header.Get("Expect"), "100-continue") { // otherwise the caller holds back the body
			c.Drain(limit + MaxDrained)
		}
		return nil, tooLong(limit)
	}
	return c.readWithin(limit, func() ([]byte, error) { return c.read(limit) })
}

// readWithin reads a body of at most limit bytes after it has waited for memory. A large body may take long to
// arrive; until then, only its own bytes count.
func (c *Call) readWithin(limit int64, read func() ([]byte, error)) ([]byte, error) {
	bytes := limit
	if c.Request.ContentLength >= 0 {
		bytes = c.Request.ContentLength
	}
	if limit <= MaxBody {
		if err := c.Reserve(bodyBytes(bytes)); err != nil {
			return nil, err
		}
		return read()
	}
	reading, err := c.memory.bodies.Acquire(c.Request.Context(), c.Caller.Tenant, bytes)
	if err != nil {
		return nil, err
	}
	defer reading.Release()
	body, err := read()
	if err != nil {
		return nil, err
	}
	return body, c.Reserve(batchBytes(int64(len(body))))
}

// bodyBytes returns the memory of a request with a body of this size, and its answer, which may have an error for each six
// bytes.
func bodyBytes(body int64) int64 { return 16<<10 + 20*body }

// MaxBatch is the largest number of members of a batch.
const MaxBatch = 1000

// batchBytes returns the memory of a batch. A member has at least thirty bytes, and its refusal a few thousand.
func batchBytes(body int64) int64 { return 6*body + min(body/30, MaxBatch)*6<<10 }

// read reads a body of at most limit bytes, whose length may be unknown.
func (c *Call) read(limit int64) ([]byte, error) {
	var buf bytes.Buffer
	if c.Request.ContentLength > 0 {
		buf.Grow(int(c.Request.ContentLength) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(c.Request.Body, limit+1))
	switch {
	case n > limit:
		c.Drain(MaxDrained)
		return nil, tooLong(limit)
	case errors.Is(err, c.Request.Context().Err()) && err != nil:
		return nil, err
	case err != nil:
		return nil, Malformed("could not be read to its end")
	}
	body := buf.Bytes()
	if !utf8.Valid(body) {
		return nil, Malformed("is not valid UTF-8")
	}
	return body, nil
}

// Drain reads and drops at most most bytes of the body.
func (c *Call) Drain(most int64) {
	if err := http.NewResponseController(c.Writer).SetReadDeadline(time.Now().Add(drainTime)); err != nil {
		return // without a deadline, nothing is read
	}
	_, _ = io.CopyN(io.Discard, c.Request.Body, most)
}

// tooLong returns a refusal that closes the connection, because the rest of the body may be unread.
func tooLong(limit int64) error {
	return &Refusal{
		Kind: TooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", limit),
		header: http.Header{"Connection": {"close"}},
	}
}

// Malformed returns the error of a body that is not JSON.
func Malformed(why string) *BadRequest {
	e := &BadRequest{malformed: true}
	e.Add("body", why, nil)
	return e
}

// checkMedia accepts JSON, and bodies without a Content-Type.
func checkMedia(h http.Header) error {
	if err := CheckCoding(h); err != nil {
		return err
	}
	given := h.Get("Content-Type")
	if given == "" || given == "application/json" {
		return nil
	}
	media, params, err := mime.ParseMediaType(given)
	if err == nil && (media == "application/json" || media == "application/merge-patch+json") && IsUTF8(params["charset"]) {
		return nil
	}
	return &Refusal{Kind: UnsupportedMedia, Detail: "send the body as application/json, in UTF-8"}
}

// CheckCoding rejects compressed bodies, and lists the accepted codings: RFC 9110, 15.5.16.
func CheckCoding(h http.Header) error {
	for coding := range strings.SplitSeq(strings.Join(h.Values("Content-Encoding"), ","), ",") {
		if coding = strings.TrimSpace(coding); coding != "" && !strings.EqualFold(coding, "identity") {
			return &Refusal{
				Kind: UnsupportedMedia, Detail: "send the body without a Content-Encoding",
				header: http.Header{"Accept-Encoding": {"identity"}},
			}
		}
	}
	return nil
}

// IsUTF8 reports whether a charset is UTF-8, by one of its names, or absent.
func IsUTF8(charset string) bool {
	return charset == "" || strings.EqualFold(charset, "utf-8") || strings.EqualFold(charset, "utf8")
}

// Object reads a body of at most limit bytes, which must be an object. A body that is not JSON ends the request, together with the
// errors outside the body.
func (c *Call) Object(limit int64, outside *FieldErrors, read func(*Reader)) (body []byte, err error) {
	if body, err = c.Body(limit); err != nil {
		return nil, err
	}
	parse := func() error { return ReadWhole(body, outside, read) }
	if len(body) > MaxBody {
		return body, c.Compute(parse)
	}
	return body, parse()
}

// ReadBody reads a body by the table. It returns all errors of the request.
func (o *Table[T]) ReadBody(c *Call, to *T, bad *FieldErrors) error {
	var found FieldErrors
	if _, err := c.Object(MaxBody, bad, func(r *Reader) { o.Read(r, to, &found) }); err != nil {
		return err
	}
	bad.AddAll("body", found)
	return bad.Err()
}

// ReadWhole returns an error unless the body is JSON and ends after the value that read has read.
func ReadWhole(body []byte, outside *FieldErrors, read func(*Reader)) error {
	r := newReader(body)
	read(r)
	if r.End(); r.Err == nil {
		return nil
	}
	e := Malformed(r.Err.Error())
	e.AddAll("", *outside)
	return e
}

// RejectBody rejects every member of a body. It returns all errors of the request.
func (c *Call) RejectBody(bad *FieldErrors) error {
	if c.Request.ContentLength == 0 {
		return bad.Err()
	}
	body, err := c.Body(MaxBody)
	if err != nil {
		return err
	}
	if len(body) > 0 {
		var found FieldErrors
		if err := ReadWhole(body, bad, func(r *Reader) { nothing.Read(r, &struct{}{}, &found) }); err != nil {
			return err
		}
		bad.AddAll("body", found)
	}
	return bad.Err()
}
