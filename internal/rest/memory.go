package rest

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// DefaultMemory is the default of the bytes of all requests and answers.
const DefaultMemory = 160 << 20

// The largest bodies, in bytes.
const (
	MaxBody      = 64 << 10
	MaxBatchBody = 4 << 20
)

// memory bounds the bytes of requests and answers, of all tenants and of each. The bytes of a request are
// estimated generously before it is read: its text, its parsed form, its data for Postgres, and its answer. While
// the answer is being sent, only the answer counts.
type memory struct {
	bodies *bulkhead.Bulkhead[uuid.UUID] // of batches that are being read
	small  *bulkhead.Bulkhead[uuid.UUID] // of small requests, such as those about one push
	large  *bulkhead.Bulkhead[uuid.UUID] // of batches, pages and availabilities: small requests do not wait for them
}

func newMemory(bytes int64) memory {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	bodies, small, large := bytes*3/10, bytes*2/10, bytes*5/10
	return memory{bulkhead.New[uuid.UUID](bodies, bodies/3), bulkhead.New[uuid.UUID](small, small/2), bulkhead.New[uuid.UUID](large, large/2)}
}

const (
	// PageBytes is for a page of about a mebibyte, and SlotsBytes for the picture of ten thousand bookings, or of half as many with their
	// conflicts.
	PageBytes  = 4 << 20
	SlotsBytes = 8 << 20
	PushBytes  = 4 * MaxBody // for one push
)

// bodyBytes returns the memory of a request with a body of this size, and its answer, which may have an error for each six
// bytes.
func bodyBytes(body int64) int64 { return 16<<10 + 20*body }

// MaxBatch is the largest number of members of a batch.
const MaxBatch = 1000

// batchBytes returns the memory of a batch. A member has at least thirty bytes, and its refusal a few thousand.
func batchBytes(body int64) int64 { return 6*body + min(body/30, MaxBatch)*6<<10 }
