// Package invalid collects the errors of an input (a request, a limit, the settings), field by field, so that all are
// reported at once. It has no rules of its own.
package invalid

import (
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
)

// FieldError is one error of one field of an input.
//
// Field is the path in the input, such as send_at, message.data or policy.rules[1].limit. Message is what is wrong, or
// what is allowed. Value is the rejected value; nil or "" if it was absent, or must not be shown. Limit and Now are the
// parts of Message that programs can read. The tags are for the REST API.
type FieldError struct {
	Field   string `json:"location" doc:"A path into the body, the query, the headers or the path." example:"body.send_at"`
	Message string `json:"message" doc:"What is wrong with it." example:"needs a time zone, like 2026-12-01T09:00:00Z"`
	Value   any    `json:"value,omitempty" doc:"The wrong value, shortened if it is long; absent if there was none."`
	Limit   string `json:"limit,omitempty" doc:"The time or the time span that message says the value must not go beyond, such as 2026-12-01T09:00:00Z, or 24h0m0s for 1 day; absent if there is none."`
	Now     string `json:"now,omitempty" format:"date-time" doc:"The time by our clocks that message calls now; absent if there is none."`
}

// Error returns the field, its value and the message, separated by colons. Absent parts are left out.
func (e FieldError) Error() string {
	var parts []string
	for _, part := range []any{e.Field, e.Value, e.Message} {
		if part != nil && part != "" {
			parts = append(parts, fmt.Sprint(part))
		}
	}
	return strings.Join(parts, ": ")
}

// FieldErrors are all errors of one input.
type FieldErrors []FieldError

// Now is the current time as an argument of [FieldErrors.Add], to the second.
type Now time.Time

// String returns the time in the API's format.
func (n Now) String() string { return stamp(time.Time(n).Truncate(time.Second)) }

// Add adds an error. Its message is formatted as by [fmt.Sprintf]. If an argument is a [time.Time] or a
// [time.Duration], it becomes Limit; a duration is printed in words. A [Now] becomes Now: the time that the limit was
// compared with.
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

// Err returns es, or nil if it is empty.
func (es FieldErrors) Err() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// Error joins all errors on one line.
func (es FieldErrors) Error() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "; ")
}

// WithoutValues is Error without the values, for texts that are stored for long.
func (es FieldErrors) WithoutValues() string {
	texts := make([]string, len(es))
	for i, e := range es {
		texts[i] = e.Field + " " + e.Message
	}
	return strings.Join(texts, "; ")
}
