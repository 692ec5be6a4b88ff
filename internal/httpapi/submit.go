package httpapi

import (
	"net/http"

	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	submitPath = "/v1/pushes"
	pushPath   = submitPath + "/{id}"
)

func (h *pushes) submit(c *call) error {
	f, options, err := h.readSubmit(c)
	if err != nil {
		return h.forms.counted(err, 1)
	}
	res, err := h.writer.Submit(c.r.Context(), c.caller.Tenant, f.Request, options)
	if err != nil {
		return f.explain("body", err)
	}
	showMessage(c, &res.Push)
	view := bookedView(res)
	if !options.ValidateOnly {
		c.note(res.Push.ID)
		c.header("Location", submitPath+"/"+view.ID)
	}
	if res.Replayed {
		c.header("Idempotency-Replayed", "true")
	}
	return c.answer(http.StatusCreated, view)
}

// readSubmit reads a submit, and refuses one with faults of form.
func (h *pushes) readSubmit(c *call) (f *form, o schedule.Options, err error) {
	o = options(c, &c.bad)
	f, body, err := h.forms.read(c, &pushFields, &c.bad)
	if err == nil && o.IdempotencyKey != "" {
		o.RequestHash = requestHash(submitPath, body)
	}
	return f, o, err
}

// options reads what goes with a submit beside its body.
func options(c *call, bad *fieldErrors) schedule.Options {
	o := schedule.Options{Caps: c.caller.Caps, RequestID: c.w.id}
	submitParams.readQuery(c.r, &o, bad)
	o.IdempotencyKey = c.idempotencyKey(bad)
	return o
}

var submitParams = table[schedule.Options]{fields: []field[schedule.Options]{
	row("validate_only", optional, boolean(func(o *schedule.Options, v bool) { o.ValidateOnly = v }).or("false"),
		"Return the answer of the real request, but book nothing.", nil),
}}
