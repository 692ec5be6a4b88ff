package rest

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// DefaultMemory is how many bytes requests and answers may take, if the API is not told.
const DefaultMemory = 160 << 20

// memory bounds the bytes that requests and answers take, of all tenants and of each. What a request will take is
// estimated before it is read, generously: the text, what is made of it, what goes to Postgres, and the answer. While
// the answer is being sent, only that counts.
type memory struct {
	bodies *bulkhead.Bulkhead[uuid.UUID] // of batches that are being read
	small  *bulkhead.Bulkhead[uuid.UUID] // of requests about one push, or the like
	large  *bulkhead.Bulkhead[uuid.UUID] // of batches, pages and pictures: no small one waits for these
}

func newMemory(bytes int64) memory {
	if bytes == 0 {
		bytes = DefaultMemory
	}
	bodies, small, large := bytes*3/10, bytes*2/10, bytes*5/10
	return memory{bulkhead.New[uuid.UUID](bodies, bodies/3), bulkhead.New[uuid.UUID](small, small/2), bulkhead.New[uuid.UUID](large, large/2)}
}

const (
	// PageBytes is for a page of about a mebibyte, and slotsBytes for the picture of ten thousand bookings, or of half as many with what
	// fills each blocked stretch.
	PageBytes  = 4 << 20
	SlotsBytes = 8 << 20
	PushBytes  = 4 * MaxBody // for one push
)

// bodyBytes is for a request with a body of so many bytes, and its answer: for each six of them it may have to tell a
// fault.
func bodyBytes(body int64) int64 { return 16<<10 + 20*body }

// MaxBatch is the largest number of members of a batch.
const MaxBatch = 1000

// batchBytes is for a batch. A member is thirty bytes at least, and its refusal a few thousand.
func batchBytes(body int64) int64 { return 6*body + min(body/30, MaxBatch)*6<<10 }

// Reserve waits for memory for the request and its answer, unless it has some.
func (c *Call) Reserve(bytes int64) (err error) {
	if c.Writer.memory == nil {
		from := c.memory.large
		if bytes <= bodyBytes(MaxBody) {
			from = c.memory.small
		}
		c.Writer.memory, err = from.Acquire(c.Request.Context(), c.Caller.Tenant, bytes)
	}
	return err
}

// Ready returns all that is wrong with the request, and else waits for memory for it.
func (c *Call) Ready(bytes int64) error {
	if err := c.Errors.Err(); err != nil {
		return err
	}
	return c.Reserve(bytes)
}

// readWithin reads a body of at most limit bytes within the memory that there is for it. A large body may take long to
// come: until it is there, it takes no more than its own bytes.
func (c *Call) readWithin(limit int64, read func() ([]byte, error)) ([]byte, error) {
	bytes := limit
	if c.Request.ContentLength >= 0 {
		bytes = c.Request.ContentLength
	}
	if limit <= MaxBody {
		if err := c.Reserve(bodyBytes(bytes)); err != nil {
			return nil, err
		}
		return read()
	}
	reading, err := c.memory.bodies.Acquire(c.Request.Context(), c.Caller.Tenant, bytes)
	if err != nil {
		return nil, err
	}
	defer reading.Release()
	body, err := read()
	if err != nil {
		return nil, err
	}
	return body, c.Reserve(batchBytes(int64(len(body))))
}
