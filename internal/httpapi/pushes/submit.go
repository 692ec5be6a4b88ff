package pushes

import (
	"net/http"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// The paths of pushes.
const (
	submitPath = "/v1/pushes"
	PushPath   = submitPath + "/{id}"
)

func (h *pushes) submit(c *rest.Call) error {
	p, found, options, err := h.readSubmit(c)
	if err != nil {
		return h.forms.counted(err, 1)
	}
	booked, err := h.writer.Submit(c.Request.Context(), c.Caller.Tenant, p, options)
	if err != nil {
		return explain(err, "body", &PushFields, found)
	}
	showMessage(c, &booked.Push)
	view := bookedView(h.texts, &booked)
	if !options.ValidateOnly {
		c.Note(booked.Push.ID)
		c.Header("Location", submitPath+"/"+view.ID)
	}
	if booked.Outcome == booking.Replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.Answer(http.StatusCreated, view)
}

// readSubmit reads a submit, and rejects one with errors of form.
func (h *pushes) readSubmit(c *rest.Call) (p schedule.Request, found rest.FieldErrors, o schedule.Options, err error) {
	o = options(c, &c.Errors)
	p, found, err = h.forms.read(c, &PushFields)
	if err == nil && o.IdempotencyKey != "" {
		o.RequestHash = rest.RequestHash(submitPath, found.Object)
	}
	return p, found, o, err
}

// options reads the options and headers of a submit.
func options(c *rest.Call, bad *rest.FieldErrors) schedule.Options {
	o := schedule.Options{Caps: c.Caller.Caps, RequestID: c.Writer.RequestID}
	submitParams.ReadQuery(c.Request, &o, bad)
	o.IdempotencyKey = c.IdempotencyKey(bad)
	return o
}

var submitParams = rest.Table[schedule.Options]{Fields: []rest.Field[schedule.Options]{
	rest.Row("validate_only", rest.Optional, rest.Boolean(func(o *schedule.Options, v bool) { o.ValidateOnly = v }).Or("false"),
		"Return the answer of the real request, but book nothing.", nil),
}}
