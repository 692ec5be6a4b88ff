package push

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/google/uuid"
)

// RecipientKey condenses a tenant's recipient to 64 bits. The key names the recipient's lock, shards the queues and
// leads the indexes, so that none of these contains personal data. Two recipients may share a key: queries compare
// tenant and recipient as well, and a shared lock only costs a short wait.
func RecipientKey(tenant uuid.UUID, recipient string) int64 {
	var room [256]byte // most recipients fit, so this avoids an allocation
	sum := sha256.Sum256(append(append(room[:0], tenant[:]...), recipient...))
	return int64(binary.BigEndian.Uint64(sum[:]))
}
