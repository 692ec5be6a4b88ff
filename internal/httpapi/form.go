package httpapi

import (
	"bytes"
	"errors"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/schedule"
)

// form is one push as a caller asks for it: what could be read, and what is wrong with the rest.
type form struct {
	schedule.Request
	fieldErrors
	expiresAfter time.Duration // of a pattern

	of   *table[form] // by which it was read
	text []byte       // of the JSON object; nil: it was none
}

// read reads a push, or what the table has of one.
func (f *form) read(r *reader, of *table[form]) {
	f.of = of
	f.text = of.read(r, f, &f.fieldErrors)
}

// validator finds what is wrong with a request beyond its form.
type validator func(schedule.Request) invalid.FieldErrors

// validator is that of a caller, for some forms.
func (a *api) validator(c *call, forms ...*form) validator {
	return a.svc.Validator(c.r.Context(), c.caller.Tenant, func(yield func(*schedule.Request) bool) {
		for _, f := range forms {
			if f.text != nil && !yield(&f.Request) {
				return
			}
		}
	})
}

// complete adds what the schedule finds wrong with the fields that could be read, to a form that is not submitted
// because of other errors.
func (f *form) complete(validate validator) {
	if f.text != nil {
		f.blame(validate(f.Request))
	}
}

// blame adds errors found by the schedule, of the fields that the caller could send and that could be read.
func (f *form) blame(found invalid.FieldErrors) {
	unread := f.fieldErrors
	for _, one := range found {
		name, _, _ := strings.Cut(one.Field, ".")
		if f.of.find(name) >= 0 && !unread.has(one.Field) && !(unread.has("channel") && dependsOnChannel(one.Field)) {
			one.Value = asWritten(f.text, one)
			f.keep(one)
		}
	}
}

// dependsOnChannel tells of a field whose errors mean nothing for a push whose channel could not be read.
func dependsOnChannel(field string) bool { return field == "to" || within(field, "message") }

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

// under is the error that all errors of the form make, as one for the caller.
func (f *form) under(location string) error {
	var all fieldErrors
	all.addAll(location, f.fieldErrors)
	return all.err()
}

// explain gives the fields in an error of the schedule their places, and the values as they were written.
func (f *form) explain(location string, err error) error {
	var wrong invalid.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	if f.blame(wrong); len(f.list) == 0 {
		return err
	}
	return f.under(location)
}
