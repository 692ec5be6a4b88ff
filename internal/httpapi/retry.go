package httpapi

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/invalid"
)

// retryFields has what can be said of a retry: when it is sent. The rest is that of the push.
var retryFields = table[form]{schemaName: "NewRetry", refuse: taken, check: checkWhen, fields: []field[form]{
	pushFields.fields[pushFields.find("send_at")],
	pushFields.fields[pushFields.find("local_time")],
	pushFields.fields[pushFields.find("time_zone")],
	pushFields.described("expires_at", "The retry is not sent at or after this time. Default: the expires_at of the original push, if the caller set it and it is after the send time; "+
		"else as long after the send time as for the original push."),
	pushFields.fields[pushFields.find("on_conflict")],
	pushFields.fields[pushFields.find("latest")],
}}

func taken(name string, raw []byte, errs *fieldErrors) bool {
	if pushFields.find(name) < 0 {
		return false
	}
	errs.addJSON(name, "cannot differ from the original push; to change it, submit a new push", raw)
	return true
}

// retry books a push that has failed or expired again, or answers with the retry that there is.
func (h *pushes) retry(c *call) error {
	o := options(c, &c.bad)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	f, body, err := h.forms.readOptional(c, &retryFields, &c.bad)
	if err != nil {
		return err
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = requestHash("/v1/pushes/"+c.id.String()+"/retry", body)
	}
	res, err := h.writer.Retry(c.r.Context(), c.caller.Tenant, c.id, f.Request, o)
	if err != nil {
		return about(c, f.explainRetry(err), res.Push)
	}
	showMessage(c, &res.Push)
	view, status := bookedView(res), http.StatusCreated
	switch {
	case res.Retried:
		status = http.StatusOK
	case !o.ValidateOnly:
		c.note(res.Push.ID)
	}
	if !o.ValidateOnly {
		c.header("Location", submitPath+"/"+view.ID)
	}
	if res.Replayed {
		c.header("Idempotency-Replayed", "true")
	}
	return c.answer(status, view)
}

// explainRetry is explain, which also tells of what is wrong with the push that is retried, such as a channel that there is no more.
func (f *form) explainRetry(err error) error {
	var (
		wrong invalid.FieldErrors
		bad   fieldErrors
	)
	if !errors.As(err, &wrong) {
		return err
	}
	for _, one := range wrong {
		if retryFields.find(one.Field) < 0 {
			bad.add("path.id", "is of a push whose "+one.Field+" "+one.Message, one.Value)
		}
	}
	f.blame(wrong)
	bad.addAll("body", f.fieldErrors)
	return bad.err()
}

// retryBody is optional.
func retryBody(s *spec) *huma.RequestBody {
	b := retryFields.body(s, map[string]any{"send_at": "2026-12-01T10:00:00Z", "on_conflict": "defer"})
	b.Required = false
	return b
}

// retried adds what is special to an answer to a retry.
func retried(s *spec, all map[string]*huma.Response, retry *pushView) {
	booked(all)
	all["200"] = s.response("The push was retried before; the answer is that retry.", retry)
	addHeader(all["200"], "Location", "The push's path. Absent with validate_only.")
}
