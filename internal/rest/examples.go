package rest

import "time"

// The documentation's examples are made by the code that makes the answers.

const (
	ExampleID      = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f01"
	ExampleOtherID = "0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f02"
)

func ExampleTime(after time.Duration) time.Time {
	return time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC).Add(after)
}
