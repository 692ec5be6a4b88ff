package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Past is the part of a push that shows its history.
type Past struct {
	push.Push
	Started time.Time // of the running attempt; zero: none

	HeldBy               string // see [push.Hold]
	HeldSince, HeldUntil time.Time
}

// Attempted is an attempt that has ended, with the fields of its push.
type Attempted struct {
	push.Send
	Push              uuid.UUID
	Campaign          uuid.UUID // zero: none
	Channel, Category string
}
