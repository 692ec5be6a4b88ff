package rest

import (
	"bytes"
	"crypto/sha256"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"
)

// RequestHash returns a hash that recognizes a repeated request: white space, escapes and the order of
// members make no difference (RFC 8785), but 1 and 1.0 are different numbers.
func RequestHash(route string, body []byte) []byte {
	canonical := jsontext.Value(bytes.Clone(body))
	err := canonical.Canonicalize(Lenient, jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil {
		canonical = body
	}
	h := sha256.New()
	h.Write([]byte(route + "\x00"))
	h.Write(canonical)
	return h.Sum(nil)
}

// IdempotencyKey reads the header: 1 to 255 printable bytes of ASCII.
func (c *Call) IdempotencyKey(bad *FieldErrors) string {
	const location = "header.Idempotency-Key"
	given := c.Request.Header["Idempotency-Key"]
	switch {
	case len(given) == 0:
		return ""
	case len(given) > 1:
		bad.Add(location, "is given more than once", Shown(given[1]))
	case len(given[0]) == 0 || len(given[0]) > 255:
		bad.Add(location, "must have 1 to 255 bytes", Shown(given[0]))
	}
	if plain := printableASCII(given[0]); plain != given[0] {
		bad.Add(location, "must be printable ASCII", Shown(plain))
	}
	return given[0]
}

// printableASCII replaces other bytes, so that the text can be shown in an error.
func printableASCII(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}

// idempotencyKeyParam documents the header Idempotency-Key.
func idempotencyKeyParam() *huma.Param {
	return Param("header", "Idempotency-Key", "Makes the request safe to repeat for 30 days: the same key and body return the same answer; the same key with another body is refused.",
		"order-1234-reminder", TextSchema(1, 255))
}
