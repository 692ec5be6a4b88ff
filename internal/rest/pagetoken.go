package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/google/uuid"
)

// A page token is the position after which the page begins, and a seal that binds it to the tenant and to the list
// with its filters, so that a token of another list is rejected. It is not secret: a position reveals nothing, and every
// page belongs to the tenant anyway.
const sealSize = 16

// SealToken returns the token of a position.
func SealToken[P any](position P, tenant uuid.UUID, list string) string {
	b, _ := json.Marshal(position) // times, ids, numbers and texts
	return base64.RawURLEncoding.EncodeToString(append(tokenMAC(b, tenant, list), b...))
}

// readPageToken reads the position in a token, unless that is empty. The token must belong to the tenant and the list.
func readPageToken[P any](token string, tenant uuid.UUID, list string, position *P, bad *FieldErrors) {
	if token == "" {
		return
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	switch {
	case err == nil && len(b) > sealSize && hmac.Equal(b[:sealSize], tokenMAC(b[sealSize:], tenant, list)):
		_ = json.Unmarshal(b[sealSize:], position) // the API has sealed it
	case len(bad.List) == 0: // otherwise, errors have changed the filter
		BadParameter(bad, "page_token", "is not a token of this list, with these filters", token)
	}
}

func tokenMAC(position []byte, tenant uuid.UUID, list string) []byte {
	h := hmac.New(sha256.New, tenant[:])
	h.Write(position)
	_, _ = io.WriteString(h, list)
	return h.Sum(nil)[:sealSize]
}
