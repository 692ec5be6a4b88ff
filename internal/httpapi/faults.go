package httpapi

import (
	"fmt"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
)

// maxFaults bounds an answer: a body can hold half a million faults.
const maxFaults = 10_000

// maxShown is how many bytes of a wrong value are shown.
const maxShown = 256

// faults collects everything that is wrong with one request.
type faults struct {
	list invalid.FieldErrors
	more int // not kept
}

func (f *faults) add(location, message string, value any) {
	if len(f.list) == maxFaults {
		f.more++
		return
	}
	f.list = append(f.list, invalid.FieldError{Field: location, Message: message, Value: value})
}

// addAll adds faults found elsewhere, with a prefix to their locations.
func (f *faults) addAll(prefix string, list invalid.FieldErrors) {
	for _, one := range list {
		f.add(under(prefix, one.Field), one.Message, one.Value)
	}
}

func under(prefix, location string) string {
	if location == "" {
		return prefix
	}
	return prefix + "." + location
}

// err is what to answer, or nil if nothing is wrong.
func (f *faults) err() error {
	if len(f.list) == 0 {
		return nil
	}
	return &badRequest{faults: *f}
}

// badRequest is a request with faults. If malformed, it could not even be read.
type badRequest struct {
	faults
	malformed bool
}

func (e *badRequest) Error() string {
	return fmt.Sprintf("%d faults, the first: %s %s", len(e.list)+e.more, e.list[0].Field, e.list[0].Message)
}

// shown is a text as the value of a fault.
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

// shownJSON is a JSON text as the value of a fault. Strings are cut short,
// other long values are left out.
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
