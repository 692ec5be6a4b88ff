package push

import (
	"crypto/sha256"
	"time"

	"github.com/google/uuid"
)

// weekZero is the Monday from which ids count weeks, modulo 4096.
var weekZero = time.Date(2000, 1, 3, 0, 0, 0, 0, time.UTC)

const (
	week     = 7 * 24 * time.Hour
	allWeeks = 1 << 12
)

// NewID returns a UUIDv7 for a push of a recipient. Its 12 bits behind the version are the week of the send time, and its
// last byte is the recipient's shard: so a push is found by its id where it was booked first.
func NewID(sendAt time.Time, recipientKey int64) uuid.UUID {
	return Dated(uuid.Must(uuid.NewV7()), sendAt, recipientKey)
}

// CampaignPushID returns the id of the push of a campaign, which was started at a time, to a recipient: the same for whoever
// asks again.
func CampaignPushID(campaign uuid.UUID, started, sendAt time.Time, recipientKey int64, recipient string) uuid.UUID {
	id := uuid.NewHash(sha256.New(), campaign, []byte(recipient), 7)
	ms := started.UnixMilli() // the ids of a campaign lie together, as those of one moment do
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

// ShardOf returns the shard of the recipient of the push with this id. An id that a caller made up names any.
func ShardOf(id uuid.UUID) int { return int(id[15]) }

// WeekOf returns when the week began in which the push with this id was to be sent when it was booked. It is only a hint:
// a push can have been moved or deferred.
func WeekOf(id uuid.UUID) time.Time {
	n := int(id[6]&0x0f)<<8 | int(id[7])
	return weekZero.Add(time.Duration(n) * week)
}
