package notify

import (
	"hash/fnv"
	"time"

	"github.com/google/uuid"
)

// Backoff lists the pauses between the attempts to deliver an event; after the
// last it is given up. They make 23 hours and 42 minutes.
func Backoff() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
}

// spread makes a pause up to a tenth shorter or longer, so that events that
// failed together do not come back together. The same delivery and attempt
// always give the same.
func spread(pause time.Duration, id uuid.UUID, attempt int) time.Duration {
	h := fnv.New32a()
	h.Write(id[:])
	h.Write([]byte{byte(attempt)})
	return pause + time.Duration(float64(pause)*0.2*(float64(h.Sum32())/(1<<32)-0.5))
}
