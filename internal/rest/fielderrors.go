package rest

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
)

// maxErrors is the largest number of errors in an answer: a body can have half a million.
const maxErrors = 10_000

// MaxShown is the number of bytes of a wrong value that an error shows.
const MaxShown = 256

// FieldErrors has all errors of a request, or of an object in its body. The fields of an object
// are relative to it.
type FieldErrors struct {
	List   invalid.FieldErrors
	Object []byte // the text of the object that was read by a table; nil: there was none
	more   int    // further errors, which are only counted
}

// Add adds an error of a field. The value is shown as it is; nil: none.
func (e *FieldErrors) Add(field, message string, value any) {
	e.Keep(invalid.FieldError{Field: field, Message: message, Value: value})
}

// Keep adds an error, or counts it beyond maxErrors.
func (e *FieldErrors) Keep(one invalid.FieldError) {
	if len(e.List) == maxErrors {
		e.more++
		return
	}
	e.List = append(e.List, one)
}

// AddJSON adds an error of a JSON value.
func (e *FieldErrors) AddJSON(field, message string, raw []byte) {
	e.Add(field, message, shownJSON(raw))
}

// AddAll adds other errors, with a prefix before their fields.
func (e *FieldErrors) AddAll(prefix string, others FieldErrors) {
	for _, one := range others.List {
		one.Field = Under(prefix, one.Field)
		e.Keep(one)
	}
	e.more += others.more
}

// Under returns the location of a field in a value at another location.
func Under(prefix, field string) string {
	if prefix == "" || field == "" {
		return prefix + field
	}
	return prefix + "." + field
}

// Item returns the location of an element of an array.
func Item(array string, i int) string { return array + "[" + strconv.Itoa(i) + "]" }

// Short cuts a name for use in a location.
func Short(name []byte) string {
	if len(name) <= 64 {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:64]), "") + "…"
}

// Has reports whether there is an error of a field, of a part of it, or of a value that contains it.
func (e *FieldErrors) Has(field string) bool {
	for _, one := range e.List {
		if Within(one.Field, field) || Within(field, one.Field) {
			return true
		}
	}
	return false
}

// Within reports whether a field is the other one or a part of it.
func Within(field, other string) bool {
	rest, ok := strings.CutPrefix(field, other)
	return ok && other != "" && (rest == "" || rest[0] == '.')
}

// Err returns the errors as one error, or nil if there are none.
func (e *FieldErrors) Err() error {
	if len(e.List) == 0 {
		return nil
	}
	return &BadRequest{FieldErrors: *e}
}

// BadRequest is an error with all errors of a request. If it is malformed, the body is not JSON.
type BadRequest struct {
	FieldErrors
	malformed bool
}

type invalidProblem struct {
	Problem
	Errors invalid.FieldErrors `json:"errors" doc:"Every error of the request."`
}

func (e *BadRequest) Error() string {
	return fmt.Sprintf("%d errors, the first: %s %s", len(e.List)+e.more, e.List[0].Field, e.List[0].Message)
}

func (e *BadRequest) problem() Problemer {
	n := len(e.List) + e.more
	detail := fmt.Sprintf("the request has %d errors", n)
	if n == 1 {
		detail = e.List[0].Field + " " + e.List[0].Message
	}
	if e.more > 0 {
		detail += fmt.Sprintf("; these are the first %d", len(e.List))
	}
	p := &invalidProblem{Problem: InvalidRequest.Because(detail), Errors: e.List}
	if e.malformed {
		p.Status = http.StatusBadRequest
	}
	return p
}

// Shown returns a text as the value of an error, cut to maxShown bytes.
func Shown(s string) any {
	if len(s) <= MaxShown {
		return s
	}
	cut := MaxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// rawJSON is a JSON value that is written unchanged.
type rawJSON []byte

// MarshalJSON returns the value.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// shownJSON returns a JSON text as the value of an error. Long strings are cut, other long values are left out.
func shownJSON(raw []byte) any {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == '"':
		s, _ := Unquote(raw)
		return Shown(s)
	case len(raw) > MaxShown:
		return nil
	}
	return rawJSON(raw)
}

// AsWritten returns the value of an error as it was written in the text of the object.
func (e *FieldErrors) AsWritten(one invalid.FieldError) any {
	var raw []byte
	if one.Value != nil && e.Object != nil {
		r := newReader(e.Object)
		for name := range r.Members {
			this := bytes.Equal(name, []byte(one.Field))
			if value := r.Value(); this {
				raw = value
			}
		}
	}
	if raw != nil {
		return shownJSON(raw)
	}
	if text, ok := one.Value.(string); ok {
		return Shown(text)
	}
	return one.Value
}
