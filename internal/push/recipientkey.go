package push

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// RecipientKey condenses a tenant's recipient to 64 bits. It names the recipient's lock, shards the queues, and leads
// the indexes, so that none of these carries personal data. Two recipients may share a key: queries compare tenant
// and recipient as well, and a shared lock only waits a little.
func RecipientKey(tenant uuid.UUID, recipient string) int64 {
	var room [256]byte // most recipients are shorter, and need no memory then
	sum := sha256.Sum256(append(append(room[:0], tenant[:]...), recipient...))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
