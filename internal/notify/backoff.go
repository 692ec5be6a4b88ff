package notify

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Backoff lists the pauses between the attempts to deliver an event; after the last it is given up. They make 23
// hours and 42 minutes.
func Backoff() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
}

// spread makes a pause up to a tenth shorter or longer.
func spread(pause time.Duration, id uuid.UUID, attempt int) time.Duration {
	return pause - pause/10 + push.Spread(pause, id[:], attempt)
}
