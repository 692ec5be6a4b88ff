package pushes

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// retryFields has the members of a retry: its send time. All others come from the original push.
var retryFields = rest.Table[schedule.Request]{SchemaName: "NewRetry", Refuse: taken, Check: checkWhen, Fields: []rest.Field[schedule.Request]{
	PushFields.Fields[PushFields.Find("send_at")],
	PushFields.Fields[PushFields.Find("local_time")],
	PushFields.Fields[PushFields.Find("time_zone")],
	PushFields.Described("expires_at", "The retry is not sent at or after this time. Default: the expires_at of the original push, if the caller set it and it is after the send time; "+
		"else as long after the send time as for the original push."),
	PushFields.Fields[PushFields.Find("on_conflict")],
	PushFields.Fields[PushFields.Find("latest")],
}}

func taken(name string, raw []byte, errs *rest.FieldErrors) bool {
	if PushFields.Find(name) < 0 {
		return false
	}
	errs.AddJSON(name, "cannot differ from the original push; to change it, submit a new push", raw)
	return true
}

// retry books a failed or expired push again, or answers with its existing retry.
func (h *pushes) retry(c *rest.Call) error {
	o := options(c, &c.Errors)
	if err := c.Reserve(rest.PushBytes); err != nil {
		return err
	}
	p, found, err := h.forms.readOptional(c, &retryFields)
	if err != nil {
		return err
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = rest.RequestHash("/v1/pushes/"+c.ID.String()+"/retry", found.Object)
	}
	made, err := h.writer.Retry(c.Request.Context(), c.Caller.Tenant, c.ID, p, o)
	if err != nil {
		return h.about(c, explainRetry(err, found), made.Push)
	}
	showMessage(c, &made.Push)
	view, status := bookedView(h.texts, &made), http.StatusCreated
	switch {
	case made.Outcome == booking.Retried:
		status = http.StatusOK
	case !o.ValidateOnly:
		c.Note(made.Push.ID)
	}
	if !o.ValidateOnly {
		c.Header("Location", submitPath+"/"+view.ID)
	}
	if made.Outcome == booking.Replayed {
		c.Header("Idempotency-Replayed", "true")
	}
	return c.Answer(status, view)
}

// explainRetry is explain for a retry. It also reports errors of the original push, for example a channel that no longer exists.
func explainRetry(err error, found rest.FieldErrors) error {
	var (
		wrong invalid.FieldErrors
		bad   rest.FieldErrors
	)
	if !errors.As(err, &wrong) {
		return err
	}
	for _, one := range wrong {
		if retryFields.Find(one.Field) < 0 {
			bad.Add("path.id", "is of a push whose "+one.Field+" "+one.Message, one.Value)
		}
	}
	blame(&retryFields, wrong, &found)
	bad.AddAll("body", found)
	return bad.Err()
}

// retryBody documents an optional body.
func retryBody(s *rest.Spec) *huma.RequestBody {
	b := retryFields.Body(s, map[string]any{"send_at": "2026-12-01T10:00:00Z", "on_conflict": "defer"})
	b.Required = false
	return b
}

// retried documents the answers to a retry.
func retried(s *rest.Spec, all map[string]*huma.Response, retry *pushView) {
	booked(all)
	all["200"] = s.Response("The push was retried before; the answer is that retry.", retry)
	rest.AddHeader(all["200"], "Location", "The push's path. Absent with validate_only.")
}
