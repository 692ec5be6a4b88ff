package rest

import (
	"bytes"
	"crypto/sha256"

	"github.com/go-json-experiment/json/jsontext"
)

// RequestHash condenses what a request asks for, to recognize its repetition: white space, escapes and the order of
// members make no difference (RFC 8785), but numbers stay as they are: 1 and 1.0 are different requests.
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
