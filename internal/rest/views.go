package rest

import (
	"time"

	"github.com/google/uuid"
)

// ViewsOf returns the view of each element.
func ViewsOf[T, V any](all []T, view func(T) V) []V {
	views := make([]V, len(all))
	for i, one := range all {
		views[i] = view(one)
	}
	return views
}

// Stamp writes a time in UTC, to the microsecond, which is the precision of Postgres. Send times have whole
// seconds.
func Stamp(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) // twice as fast as another layout
}

// StampLike is [Stamp] for a time that often equals another one with a known stamp.
func StampLike(t, other time.Time, stamped string) string {
	if t.Equal(other) {
		return stamped
	}
	return Stamp(t)
}

// Ceil returns the number of units in a time span, rounded up, so that a caller that waits for it is not too early.
func Ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }

// MaybeTime returns the stamp of a time, or nil for the zero time.
func MaybeTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := Stamp(t)
	return &s
}

// MaybePast is [MaybeTime] for a pointer.
func MaybePast(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return MaybeTime(*t)
}

// MaybeText returns a pointer to a text, or nil for the empty one.
func MaybeText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// MaybeID returns the text of an id, or nil for [uuid.Nil].
func MaybeID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	text := id.String()
	return &text
}

// OrBlank returns the text, or the empty one for nil.
func OrBlank(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// OrNowhere returns a pointer to the position of the next page, or nil for the zero position.
func OrNowhere[P comparable](next P) *P {
	var none P
	if next == none {
		return nil
	}
	return &next
}
