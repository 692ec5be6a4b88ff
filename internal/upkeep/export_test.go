package upkeep

import (
	"time"

	"github.com/sendquota/sendquota/internal/booking"
)

// NewAuditPace returns a function that returns the pause after a chunk.
func NewAuditPace(now func() time.Time, interval time.Duration, last *booking.AuditResult) func(took time.Duration) time.Duration {
	return newAuditPace(now, interval, last).pause
}
