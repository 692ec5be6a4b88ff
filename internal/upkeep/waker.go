package upkeep

import "time"

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}
