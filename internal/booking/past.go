package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Past is a push, as far as it tells what has happened to it.
type Past struct {
	push.Push
	Started time.Time // of the attempt under way; zero: there is none

	HeldBy               string // see [push.Hold]
	HeldSince, HeldUntil time.Time
}

// Attempted is an attempt that has ended, and what it was of.
type Attempted struct {
	push.Send
	Push              uuid.UUID
	Campaign          uuid.UUID // zero: of none
	Channel, Category string
}
