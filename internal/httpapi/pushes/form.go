package pushes

import (
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// Form is a push in a request: its readable members, and the errors of the others.
type Form struct {
	schedule.Request
	rest.FieldErrors
	ExpiresAfter time.Duration // of a pattern

	of   *rest.Table[Form] // the table that the form was read with
	text []byte            // of the JSON object; nil: the value was no object
}

// Read reads a push by a table, which may have only some of its members.
func (f *Form) Read(r *rest.Reader, of *rest.Table[Form]) {
	f.of = of
	f.text = of.Read(r, f, &f.FieldErrors)
}

// FormService checks requests beyond their form.
type FormService interface {
	Validator(ctx context.Context, tenant uuid.UUID, of iter.Seq[*schedule.Request]) func(schedule.Request) invalid.FieldErrors
	CountInvalid(pushes int)
}

// Forms reads pushes from bodies.
type Forms struct{ svc FormService }

// NewForms returns a reader that checks requests with svc.
func NewForms(svc FormService) Forms { return Forms{svc} }

// read reads a body by a table. If the body or another part of the request is invalid, it returns all errors.
func (h *Forms) read(c *rest.Call, of *rest.Table[Form], bad *rest.FieldErrors) (*Form, []byte, error) {
	f := &Form{}
	body, err := c.Object(rest.MaxBody, bad, func(r *rest.Reader) { f.Read(r, of) })
	if err != nil {
		return f, nil, err
	}
	return f, body, h.check(c, f, bad)
}

// readOptional is read for a body that may be absent. An absent body is an empty object.
func (h *Forms) readOptional(c *rest.Call, of *rest.Table[Form], bad *rest.FieldErrors) (*Form, []byte, error) {
	f := &Form{}
	body, err := c.Body(rest.MaxBody)
	if err != nil {
		return f, nil, err
	}
	if len(body) == 0 {
		body = []byte(`{}`)
	}
	if err := rest.ReadWhole(body, bad, func(r *rest.Reader) { f.Read(r, of) }); err != nil {
		return f, nil, err
	}
	return f, body, h.check(c, f, bad)
}

// check returns all errors of the request, if the form or another part of the request has any.
func (h *Forms) check(c *rest.Call, f *Form, bad *rest.FieldErrors) error {
	if len(bad.List)+len(f.List) > 0 {
		f.Complete(h.Validator(c, f))
		bad.AddAll("body", f.FieldErrors)
	}
	return bad.Err()
}

// counted counts a number of pushes as invalid if err is an error of their form, because the schedule never sees them. It returns err.
func (h *Forms) counted(err error, pushes int) error {
	if _, ok := errors.AsType[*rest.BadRequest](err); ok {
		h.svc.CountInvalid(pushes)
	}
	return err
}

// validator returns the errors of a request beyond its form.
type validator func(schedule.Request) invalid.FieldErrors

// Validator returns a validator for the tenant and the given forms.
func (h *Forms) Validator(c *rest.Call, forms ...*Form) validator {
	return h.svc.Validator(c.Request.Context(), c.Caller.Tenant, func(yield func(*schedule.Request) bool) {
		for _, f := range forms {
			if f.text != nil && !yield(&f.Request) {
				return
			}
		}
	})
}

// Complete adds the schedule's errors in the readable members of a form that is not submitted
// because of other errors.
func (f *Form) Complete(validate validator) {
	if f.text != nil {
		f.blame(validate(f.Request))
	}
}

// blame adds the schedule's errors in members that the caller can send and that were readable.
func (f *Form) blame(found invalid.FieldErrors) {
	unread := f.FieldErrors
	for _, one := range found {
		name, _, _ := strings.Cut(one.Field, ".")
		if f.of == &checkFields && name == "message" && f.Message == nil {
			continue // a check needs none
		}
		if f.of.Find(name) >= 0 && !unread.Has(one.Field) && !(unread.Has("channel") && dependsOnChannel(one.Field)) {
			one.Value = rest.AsWritten(f.text, one)
			f.Keep(one)
		}
	}
}

// dependsOnChannel reports whether the errors of a field are meaningless if the channel is unreadable.
func dependsOnChannel(field string) bool { return field == "to" || rest.Within(field, "message") }

// under returns all errors of the form as one error, at a location.
func (f *Form) under(location string) error {
	var all rest.FieldErrors
	all.AddAll(location, f.FieldErrors)
	return all.Err()
}

// explain adds the location to the fields in an error of the schedule, and the values as they were written.
func (f *Form) explain(location string, err error) error {
	var wrong invalid.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	if f.blame(wrong); len(f.List) == 0 {
		return err
	}
	return f.under(location)
}
