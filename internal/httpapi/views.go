package httpapi

import (
	"time"

	"github.com/google/uuid"
)

// viewsOf returns the view of each element.
func viewsOf[T, V any](all []T, view func(T) V) []V {
	views := make([]V, len(all))
	for i, one := range all {
		views[i] = view(one)
	}
	return views
}

// maybe returns the stamp of a time, or nil for the zero time.
func maybe(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// maybePast is [maybe] for a pointer.
func maybePast(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return maybe(*t)
}

// maybeText returns a pointer to a text, or nil for the empty one.
func maybeText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// maybeID returns the text of an id, or nil for [uuid.Nil].
func maybeID(id uuid.UUID) *string {
	if id == uuid.Nil {
		return nil
	}
	text := id.String()
	return &text
}

// orBlank returns the text, or the empty one for nil.
func orBlank(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// orNowhere returns a pointer to the position of the next page, or nil for the zero position.
func orNowhere[P comparable](next P) *P {
	var none P
	if next == none {
		return nil
	}
	return &next
}
