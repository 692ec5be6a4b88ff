// Package invalid says what is wrong with an input (a request, a limit, the settings), field by field. It has no rules of
// its own: whoever reads an input gathers here everything that is wrong with it, so that it is reported at once.
package invalid

import (
	"fmt"
	"strings"
)

// FieldError is one thing that is wrong with one field of an input.
//
// Field is its place in the input, such as send_at, message.data or policy.rules[1].limit. Message says what is wrong, or
// what is allowed. Value is what was there; nil or "" where nothing was, or where it must not be shown. The tags are those
// of the REST API.
type FieldError struct {
	Field   string `json:"location" doc:"A path into the body, the query, the headers or the path." example:"body.send_at"`
	Message string `json:"message" doc:"What is wrong with it." example:"needs a time zone, like 2026-12-01T09:00:00Z"`
	Value   any    `json:"value,omitempty" doc:"The wrong value, shortened if it is long; absent if there was none."`
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

// Add adds an error. Its message is formatted as by [fmt.Sprintf].
func (es *FieldErrors) Add(field string, value any, message string, args ...any) {
	*es = append(*es, FieldError{Field: field, Message: fmt.Sprintf(message, args...), Value: value})
}

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
