package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/store"
)

// A page token is the position behind which the page begins (the send time in
// Unix seconds, the id), and a seal that binds it to the tenant and the
// filters, so that a token of another list is noticed. It is no secret: a
// position tells nothing, and every page is the tenant's own anyway.
const (
	positionSize = 8 + 16
	sealSize     = 16
)

// pageToken writes a position.
func pageToken(p store.Position, tenant uuid.UUID, f store.Filter) string {
	token := binary.BigEndian.AppendUint64(nil, uint64(p.SendAt.Unix()))
	token = append(token, p.ID[:]...)
	return base64.RawURLEncoding.EncodeToString(append(token, seal(token, tenant, f)...))
}

// readPageToken reads a position. It is false if the token was not made for
// this tenant and these filters. No token is the beginning.
func readPageToken(token string, tenant uuid.UUID, f store.Filter) (store.Position, bool) {
	if token == "" {
		return store.Position{}, true
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != positionSize+sealSize || !hmac.Equal(b[positionSize:], seal(b[:positionSize], tenant, f)) {
		return store.Position{}, false
	}
	return store.Position{
		SendAt: time.Unix(int64(binary.BigEndian.Uint64(b)), 0).UTC(),
		ID:     uuid.UUID(b[8:positionSize]),
	}, true
}

func seal(position []byte, tenant uuid.UUID, f store.Filter) []byte {
	h := hmac.New(sha256.New, tenant[:])
	h.Write(position)
	fmt.Fprintf(h, "%q %q %q %q %s %s", f.Recipient, f.Channel, f.Category, f.Status, stamp(f.From), stamp(f.Until))
	return h.Sum(nil)[:sealSize]
}
