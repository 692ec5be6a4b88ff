// Package invalid says what is wrong with an input (a request, a limit, the settings), field by field. It has no rules of
// its own: whoever reads an input gathers here everything that is wrong with it, so that it is reported at once.
package invalid

import (
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
)

// FieldError is one thing that is wrong with one field of an input.
//
// Field is its place in the input, such as send_at, message.data or policy.rules[1].limit. Message says what is wrong, or
// what is allowed. Value is what was there; nil or "" where nothing was, or where it must not be shown. Limit and Now are
// the parts of Message that programs can read. The tags are those of the REST API.
type FieldError struct {
	Field   string `json:"location" doc:"A path into the body, the query, the headers or the path." example:"body.send_at"`
	Message string `json:"message" doc:"What is wrong with it." example:"needs a time zone, like 2026-12-01T09:00:00Z"`
	Value   any    `json:"value,omitempty" doc:"The wrong value, shortened if it is long; absent if there was none."`
	Limit   string `json:"limit,omitempty" doc:"The time or the time span that message says the value must not go beyond, such as 2026-12-01T09:00:00Z, or 24h0m0s for 1 day; absent if there is none."`
	Now     string `json:"now,omitempty" format:"date-time" doc:"The time by our clocks that message calls now; absent if there is none."`
}

// Error is the field, its value and the message, separated by colons. What is absent is left out.
func (e FieldError) Error() string {
	var parts []string
	for _, part := range []any{e.Field, e.Value, e.Message} {
		if part != nil && part != "" {
			parts = append(parts, fmt.Sprint(part))
		}
	}
	return strings.Join(parts, ": ")
}

// FieldErrors is everything that is wrong with one input.
type FieldErrors []FieldError

// Now is the current time as an argument of [FieldErrors.Add], to the second.
type Now time.Time

// String is the time as the API writes times.
func (n Now) String() string { return stamp(time.Time(n).Truncate(time.Second)) }

// Add adds an error. Its message is formatted as by [fmt.Sprintf]. A [time.Time] or a [time.Duration] among its arguments is
// the limit, a duration in words, and a [Now] the time that it was compared with.
func (es *FieldErrors) Add(field string, value any, message string, args ...any) {
	f := FieldError{Field: field, Value: value}
	for i, arg := range args {
		switch v := arg.(type) {
		case time.Time:
			f.Limit = stamp(v)
			args[i] = f.Limit
		case time.Duration:
			f.Limit, args[i] = v.String(), duration.Words(v)
		case Now:
			f.Now = v.String()
		}
	}
	f.Message = fmt.Sprintf(message, args...)
	*es = append(*es, f)
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// Err is es, or nil if nothing is wrong.
func (es FieldErrors) Err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// Error is all of the errors on one line.
func (es FieldErrors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// WithoutValues is Error without the values: what is kept for long holds none.
func (es FieldErrors) WithoutValues() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Field + " " + e.Message
	}
	return strings.Join(texts, "; ")
}
