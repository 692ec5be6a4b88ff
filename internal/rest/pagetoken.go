package rest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"

	"github.com/google/uuid"
)

// A page token is the position behind which the page begins, and a seal that binds it to the tenant and to the list
// with its filters, so that a token of another list is noticed. It is no secret: a position tells nothing, and every
// page is the tenant's own anyway.
const sealSize = 16

// SealToken writes a position.
func SealToken[P any](position P, tenant uuid.UUID, list string) string {
	b, _ := json.Marshal(position) // times, ids, numbers and texts
	return base64.RawURLEncoding.EncodeToString(append(tokenMAC(b, tenant, list), b...))
}

// readPageToken reads a position, unless there is no token. A token must be made for the tenant and the list.
func readPageToken[P any](token string, tenant uuid.UUID, list string, position *P, bad *FieldErrors) {
	if token == "" {
		return
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	switch {
	case err == nil && len(b) > sealSize && hmac.Equal(b[:sealSize], tokenMAC(b[sealSize:], tenant, list)):
		_ = json.Unmarshal(b[sealSize:], position) // it was sealed here
	case len(bad.List) == 0: // else other errors have changed the filter
		BadParameter(bad, "page_token", "is not a token of this list, with these filters", token)
	}
}

func tokenMAC(position []byte, tenant uuid.UUID, list string) []byte {
	h := hmac.New(sha256.New, tenant[:])
	h.Write(position)
	_, _ = io.WriteString(h, list)
	return h.Sum(nil)[:sealSize]
}
