package httpapi

import (
	"errors"
	"net/http"

	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	submitPath = "/v1/pushes"
	pushPath   = submitPath + "/{id}"
)

func (a *api) submit(c *call) error {
	f, options, err := a.readSubmit(c)
	if err != nil {
		return a.counted(err, 1)
	}
	res, err := a.svc.Submit(c.r.Context(), c.caller.Tenant, f.Request, options)
	if err != nil {
		return f.explain("body", err)
	}
	c.showMessage(&res.Push)
	view := bookedView(res)
	if !options.ValidateOnly {
		c.note(res.Push.ID)
		c.w.setHeader("Location", submitPath+"/"+view.ID)
	}
	if res.Replayed {
		c.w.setHeader("Idempotency-Replayed", "true")
	}
	return a.answer(c.w, http.StatusCreated, view)
}

// readSubmit reads a submit, and refuses one with faults of form.
func (a *api) readSubmit(c *call) (f *form, o schedule.Options, err error) {
	o = c.options(&c.bad)
	f, body, err := a.readForm(c, &pushFields, &c.bad)
	if err == nil && o.IdempotencyKey != "" {
		o.RequestHash = requestHash(submitPath, body)
	}
	return f, o, err
}

// readForm reads a body by a table. It returns all that is wrong with the request, if the form or what goes along has
// errors.
func (a *api) readForm(c *call, of *table[form], bad *fieldErrors) (*form, []byte, error) {
	f := &form{}
	body, err := c.object(maxBody, bad, func(r *reader) { f.read(r, of) })
	if err != nil {
		return f, nil, err
	}
	return f, body, a.checkForm(c, f, bad)
}

// readOptionalForm is readForm for a body that may be absent: it is an empty object then.
func (a *api) readOptionalForm(c *call, of *table[form], bad *fieldErrors) (*form, []byte, error) {
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
	return f, body, a.checkForm(c, f, bad)
}

// checkForm returns all that is wrong with the request, if the form or what goes along has errors.
func (a *api) checkForm(c *call, f *form, bad *fieldErrors) error {
	if len(bad.list)+len(f.list) > 0 {
		f.complete(a.validator(c, f))
		bad.addAll("body", f.fieldErrors)
	}
	return bad.err()
}

// counted counts so many pushes as invalid if err is a fault of their form, which the schedule does not get to see, and
// returns err.
func (a *api) counted(err error, pushes int) error {
	if _, ok := errors.AsType[*badRequest](err); ok {
		a.svc.CountInvalid(pushes)
	}
	return err
}

// options reads what goes with a submit beside its body.
func (c *call) options(bad *fieldErrors) schedule.Options {
	o := schedule.Options{Caps: c.caller.Caps, RequestID: c.w.id}
	submitParams.readQuery(c.r, &o, bad)
	o.IdempotencyKey = c.idempotencyKey(bad)
	return o
}

var submitParams = table[schedule.Options]{fields: []field[schedule.Options]{
	{"validate_only", optional, boolean(func(o *schedule.Options, v bool) { o.ValidateOnly = v }).or("false"),
		"Return the answer of the real request, but book nothing.", nil},
}}

// idempotencyKey reads the header: 1 to 255 printable bytes of ASCII.
func (c *call) idempotencyKey(bad *fieldErrors) string {
	const location = "header.Idempotency-Key"
	given := c.r.Header["Idempotency-Key"]
	switch {
	case len(given) == 0:
		return ""
	case len(given) > 1:
		bad.add(location, "is given more than once", shown(given[1]))
	case len(given[0]) == 0 || len(given[0]) > 255:
		bad.add(location, "must have 1 to 255 bytes", shown(given[0]))
	}
	if plain := printableASCII(given[0]); plain != given[0] {
		bad.add(location, "must be printable ASCII", shown(plain))
	}
	return given[0]
}

// printableASCII makes bytes of any kind fit for a fault.
func printableASCII(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] < ' ' || b[i] > '~' {
			b[i] = '?'
		}
	}
	return string(b)
}
