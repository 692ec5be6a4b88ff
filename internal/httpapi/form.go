package httpapi

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

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

// formService checks requests beyond their form.
type formService interface {
	Validator(ctx context.Context, tenant uuid.UUID, of iter.Seq[*schedule.Request]) func(schedule.Request) invalid.FieldErrors
	CountInvalid(pushes int)
}

// forms reads pushes from bodies.
type forms struct{ svc formService }

// newForms returns a reader that checks requests with svc.
func newForms(svc formService) forms { return forms{svc} }

// read reads a body by a table. If the body or another part of the request is invalid, it returns all errors.
func (h *forms) read(c *call, of *table[form], bad *fieldErrors) (*form, []byte, error) {
	f := &form{}
	body, err := c.object(maxBody, bad, func(r *reader) { f.read(r, of) })
	if err != nil {
		return f, nil, err
	}
	return f, body, h.check(c, f, bad)
}

// readOptional is read for a body that may be absent. An absent body is an empty object.
func (h *forms) readOptional(c *call, of *table[form], bad *fieldErrors) (*form, []byte, error) {
	f := &form{}
	body, err := c.body(maxBody)
	if err != nil {
		return f, nil, err
	}
	if len(body) == 0 {
		body = []byte(`{}`)
	}
	if err := readWhole(body, bad, func(r *reader) { f.read(r, of) }); err != nil {
		return f, nil, err
	}
	return f, body, h.check(c, f, bad)
}

// check returns all errors of the request, if the form or another part of the request has any.
func (h *forms) check(c *call, f *form, bad *fieldErrors) error {
	if len(bad.list)+len(f.list) > 0 {
		f.complete(h.validator(c, f))
		bad.addAll("body", f.fieldErrors)
	}
	return bad.err()
}

// counted counts a number of pushes as invalid if err is an error of their form, because the schedule never sees them. It returns err.
func (h *forms) counted(err error, pushes int) error {
	if _, ok := errors.AsType[*badRequest](err); ok {
		h.svc.CountInvalid(pushes)
	}
	return err
}

// validator finds what is wrong with a request beyond its form.
type validator func(schedule.Request) invalid.FieldErrors

// validator is that of a caller, for some forms.
func (h *forms) validator(c *call, forms ...*form) validator {
	return h.svc.Validator(c.r.Context(), c.caller.Tenant, func(yield func(*schedule.Request) bool) {
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
