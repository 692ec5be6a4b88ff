package pushes

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// FormService checks requests beyond their form.
type FormService interface {
	Validator(ctx context.Context, tenant uuid.UUID, of iter.Seq[*schedule.Request]) func(schedule.Request) invalid.FieldErrors
	CountInvalid(pushes int)
}

// Forms reads requests for pushes from bodies, by tables, and reports all errors of a request at once.
type Forms struct{ svc FormService }

// NewForms returns a reader that checks requests with svc.
func NewForms(svc FormService) Forms { return Forms{svc} }

// read reads a body by a table. If the body or another part of the request is invalid, it returns all errors. Otherwise,
// found has no errors yet.
func (h *Forms) read(c *rest.Call, of *rest.Table[schedule.Request]) (p schedule.Request, found rest.FieldErrors, err error) {
	if _, err = c.Object(rest.MaxBody, &c.Errors, func(r *rest.Reader) { of.Read(r, &p, &found) }); err == nil {
		err = h.check(c, of, &p, &found)
	}
	return p, found, err
}

// readOptional is read for a body that may be absent. An absent body is an empty object.
func (h *Forms) readOptional(c *rest.Call, of *rest.Table[schedule.Request]) (p schedule.Request, found rest.FieldErrors, err error) {
	body, err := c.Body(rest.MaxBody)
	if err != nil {
		return p, found, err
	}
	if len(body) == 0 {
		body = []byte(`{}`)
	}
	if err = rest.ReadWhole(body, &c.Errors, func(r *rest.Reader) { of.Read(r, &p, &found) }); err == nil {
		err = h.check(c, of, &p, &found)
	}
	return p, found, err
}

// check returns all errors of a request if it has errors of its form, which are in found, or in other parts.
func (h *Forms) check(c *rest.Call, of *rest.Table[schedule.Request], p *schedule.Request, found *rest.FieldErrors) error {
	if len(c.Errors.List)+len(found.List) > 0 {
		h.Complete(c, of, p, found)
		c.Errors.AddAll("body", *found)
	}
	return c.Errors.Err()
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

// validator returns a validator for the tenant and the given requests.
func (h *Forms) validator(c *rest.Call, all ...*schedule.Request) validator {
	return h.svc.Validator(c.Request.Context(), c.Caller.Tenant, slices.Values(all))
}

// Complete adds to found the schedule's errors in the readable members of a request that is not submitted because of
// other errors.
func (h *Forms) Complete(c *rest.Call, of *rest.Table[schedule.Request], p *schedule.Request, found *rest.FieldErrors) {
	if found.Object != nil {
		h.validator(c, p).complete(of, p, found)
	}
}

func (validate validator) complete(of *rest.Table[schedule.Request], p *schedule.Request, found *rest.FieldErrors) {
	wrong := validate(*p)
	if of == &checkFields && p.Message == nil { // a check needs none
		wrong = slices.DeleteFunc(wrong, func(one invalid.FieldError) bool { return rest.Within(one.Field, "message") })
	}
	blame(of, wrong, found)
}

// blame adds to found the schedule's errors in members that the caller can send and that were readable.
func blame(of *rest.Table[schedule.Request], wrong invalid.FieldErrors, found *rest.FieldErrors) {
	unread := *found
	for _, one := range wrong {
		name, _, _ := strings.Cut(one.Field, ".")
		if of.Find(name) >= 0 && !unread.Has(one.Field) && !(unread.Has("channel") && dependsOnChannel(one.Field)) {
			one.Value = found.AsWritten(one)
			found.Keep(one)
		}
	}
}

// dependsOnChannel reports whether the errors of a field are meaningless if the channel is unreadable.
func dependsOnChannel(field string) bool { return field == "to" || rest.Within(field, "message") }

// under returns errors as one error, at a location.
func under(location string, found rest.FieldErrors) error {
	var all rest.FieldErrors
	all.AddAll(location, found)
	return all.Err()
}

// explain adds the location of a request to the fields in an error of the schedule, and the values as they were written.
// found has the errors of the request's form, if it has any, and its text.
func explain(err error, location string, of *rest.Table[schedule.Request], found rest.FieldErrors) error {
	var wrong invalid.FieldErrors
	if !errors.As(err, &wrong) {
		return err
	}
	if blame(of, wrong, &found); len(found.List) == 0 {
		return err
	}
	return under(location, found)
}
