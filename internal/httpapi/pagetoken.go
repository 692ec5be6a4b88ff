package httpapi

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// A page token is the position behind which the page begins, and a seal that binds it to the tenant and to the list
// with its filters, so that a token of another list is noticed. It is no secret: a position tells nothing, and every
// page is the tenant's own anyway.
const (
	positionSize = 8 + 16
	sealSize     = 16
)

// pageToken writes a position in a list of pushes: the send time in Unix seconds, the id.
func pageToken(p push.Position, tenant uuid.UUID, f push.Filter) string {
	position := binary.BigEndian.AppendUint64(nil, uint64(p.SendAt.Unix()))
	return sealed(append(position, p.ID[:]...), tenant, pushList(f))
}

// readPageToken reads a position. It is false if the token was not made for this tenant and these filters. No token is
// the beginning.
func readPageToken(token string, tenant uuid.UUID, f push.Filter) (push.Position, bool) {
	if token == "" {
		return push.Position{}, true
	}
	b, ok := unsealed(token, positionSize, tenant, pushList(f))
	if !ok {
		return push.Position{}, false
	}
	return push.Position{SendAt: time.Unix(int64(binary.BigEndian.Uint64(b)), 0).UTC(), ID: uuid.UUID(b[8:])}, true
}

func pushList(f push.Filter) string {
	return fmt.Sprintf("%q %q %q %q %s %s", f.Recipient, f.Channel, f.Category, f.Status, stamp(f.From), stamp(f.Until))
}

// sealed makes a token of a position in a list.
func sealed(position []byte, tenant uuid.UUID, list string) string {
	return base64.RawURLEncoding.EncodeToString(append(position, seal(position, tenant, list)...))
}

// unsealed returns the position in a token, if it was made for that list.
func unsealed(token string, size int, tenant uuid.UUID, list string) (position []byte, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil || len(b) != size+sealSize || !hmac.Equal(b[size:], seal(b[:size], tenant, list)) {
		return nil, false
	}
	return b[:size], true
}

func seal(position []byte, tenant uuid.UUID, list string) []byte {
	h := hmac.New(sha256.New, tenant[:])
	h.Write(position)
	fmt.Fprint(h, list)
	return h.Sum(nil)[:sealSize]
}
