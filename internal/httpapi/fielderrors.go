package httpapi

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
)

// maxErrors bounds an answer: a body can have half a million errors.
const maxErrors = 10_000

// maxShown is how many bytes of a wrong value are shown.
const maxShown = 256

// fieldErrors is everything that is wrong with one request, or with one object of its body. Of an object, the fields
// are relative to it.
type fieldErrors struct {
	list invalid.FieldErrors
	more int // not kept
}

func (e *fieldErrors) add(field, message string, value any) {
	e.keep(invalid.FieldError{Field: field, Message: message, Value: value})
}

// keep adds an error that was found elsewhere.
func (e *fieldErrors) keep(one invalid.FieldError) {
	if len(e.list) == maxErrors {
		e.more++
		return
	}
	e.list = append(e.list, one)
}

// addJSON adds an error of a JSON value.
func (e *fieldErrors) addJSON(field, message string, raw []byte) {
	e.add(field, message, shownJSON(raw))
}

// addAll adds errors found elsewhere, and puts a prefix before their fields.
func (e *fieldErrors) addAll(prefix string, others fieldErrors) {
	for _, one := range others.list {
		one.Field = under(prefix, one.Field)
		e.keep(one)
	}
	e.more += others.more
}

func under(prefix, field string) string {
	if prefix == "" || field == "" {
		return prefix + field
	}
	return prefix + "." + field
}

// has reports whether something was found wrong with a field, with a part of it, or with what it is part of.
func (e *fieldErrors) has(field string) bool {
	for _, one := range e.list {
		if within(one.Field, field) || within(field, one.Field) {
			return true
		}
	}
	return false
}

// within reports whether a field is another one or a part of it.
func within(field, other string) bool {
	rest, ok := strings.CutPrefix(field, other)
	return ok && other != "" && (rest == "" || rest[0] == '.')
}

// err is what to answer, or nil if nothing is wrong.
func (e *fieldErrors) err() error {
	if len(e.list) == 0 {
		return nil
	}
	return &badRequest{fieldErrors: *e}
}

// badRequest is a request that is refused for its errors. If it is malformed, its body is no JSON.
type badRequest struct {
	fieldErrors
	malformed bool
}

func (e *badRequest) Error() string {
	return fmt.Sprintf("%d errors, the first: %s %s", len(e.list)+e.more, e.list[0].Field, e.list[0].Message)
}

func (e *badRequest) problem() problemer {
	n := len(e.list) + e.more
	detail := fmt.Sprintf("the request has %d errors", n)
	if n == 1 {
		detail = e.list[0].Field + " " + e.list[0].Message
	}
	if e.more > 0 {
		detail += fmt.Sprintf("; these are the first %d", len(e.list))
	}
	p := &invalidProblem{Problem: invalidRequest.because(detail), Errors: e.list}
	if e.malformed {
		p.Status = http.StatusBadRequest
	}
	return p
}

// shown is a text as the value of an error.
func shown(s string) any {
	if len(s) <= maxShown {
		return s
	}
	cut := maxShown
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// rawJSON is a JSON value that is passed on as it is.
type rawJSON []byte

// MarshalJSON returns the value.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// shownJSON is a JSON text as the value of an error. Strings are cut short, other long values are left out.
func shownJSON(raw []byte) any {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] == '"':
		s, _ := unquote(raw)
		return shown(s)
	case len(raw) > maxShown:
		return nil
	}
	return rawJSON(raw)
}

// asWritten is the value of an error, as it was written in the text of an object.
func asWritten(object []byte, e invalid.FieldError) any {
	var raw []byte
	if e.Value != nil && object != nil {
		r := newReader(object)
		for name := range r.members {
			this := bytes.Equal(name, []byte(e.Field))
			if value := r.value(); this {
				raw = value
			}
		}
	}
	if raw != nil {
		return shownJSON(raw)
	}
	if text, ok := e.Value.(string); ok {
		return shown(text)
	}
	return e.Value
}
