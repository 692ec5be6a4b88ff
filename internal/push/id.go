package push

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"
)

// weekZero is the Monday where the week numbers of ids begin, modulo 4096.
var weekZero = time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC)

const (
	week     = 7 * 24 * time.Hour
	allWeeks = 1 << 12
)

// NewID returns a UUIDv7 for a push of a recipient. The 12 bits after the version are the week of the send time, and
// the last byte is the recipient's shard. They lead to the partition where the push was first booked.
func NewID(sendAt time.Time, recipientKey int64) uuid.UUID {
	return Dated(uuid.Must(uuid.NewV7()), sendAt, recipientKey)
}

// CampaignPushID returns the id of a campaign's push to a recipient. It is deterministic: the same arguments give the
// same id. started is when the campaign was started.
func CampaignPushID(campaign uuid.UUID, started, sendAt time.Time, recipientKey int64, recipient string) uuid.UUID {
	id := uuid.NewHash(sha256.New(), campaign, []byte(recipient), 7)
	ms := started.UnixMilli() // the ids of a campaign are adjacent, like ids of one moment
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	return Dated(id, sendAt, recipientKey)
}

// Dated writes the week of a send time and the shard of a recipient into an id.
func Dated(id uuid.UUID, sendAt time.Time, recipientKey int64) uuid.UUID {
	n := sendAt.Sub(weekZero) / week % allWeeks
	id[6], id[7] = id[6]&0xf0|byte(n>>8), byte(n)
	id[15] = byte(Shard(recipientKey))
	return id
}

// ShardOf returns the shard in the id of a push. An id that a caller made up may name any shard.
func ShardOf(id uuid.UUID) int { return int(id[15]) }

// WeekOf returns the start of the week of the first booked send time, from the id of a push. It is only a hint: a push
// can have been moved or deferred.
func WeekOf(id uuid.UUID) time.Time {
	n := int(id[6]&0x0f)<<8 | int(id[7])
	return weekZero.Add(time.Duration(n) * week)
}

// RecipientKey condenses a tenant's recipient to 64 bits. The key names the recipient's lock, shards the queues and
// leads the indexes, so that none of these contains personal data. Two recipients may share a key: queries compare
// tenant and recipient as well, and a shared lock only costs a short wait.
func RecipientKey(tenant uuid.UUID, recipient string) int64 {
	var room [256]byte // most recipients fit, so this avoids an allocation
	sum := sha256.Sum256(append(append(room[:0], tenant[:]...), recipient...))
	return int64(binary.BigEndian.Uint64(sum[:]))
}

// Shards is the number of parts that all recipients are divided into. It never changes.
const Shards = 256

// Shard returns the part that a recipient belongs to: 0 to Shards-1.
func Shard(recipientKey int64) int { return int(recipientKey & (Shards - 1)) }
