package httpapi

import (
	"errors"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

const submitPath = "/v1/pushes"

// submit books one push.
func (a *api) submit(c *call) error {
	f, options, err := a.readSubmit(c)
	if err != nil {
		return a.counted(err, 1)
	}
	res, err := a.svc.Submit(c.r.Context(), c.caller.Tenant, f.Request, options)
	if err != nil {
		return f.explain("body", err)
	}
	h := c.w.Header()
	if !options.ValidateOnly {
		c.note(res.Push.ID)
		h.Set("Location", submitPath+"/"+res.Push.ID.String())
	}
	if res.Replayed {
		h.Set("Idempotency-Replayed", "true")
	}
	return a.answer(c.w, http.StatusCreated, bookedView(res))
}

// readSubmit reads a submit, and refuses one with faults of form.
func (a *api) readSubmit(c *call) (f form, o schedule.Options, err error) {
	var bad faults
	o = c.options(&bad)
	body, err := c.object(maxBody, &bad, func(r *reader) { f = readForm(r) })
	if err != nil {
		return f, o, err
	}
	if len(bad.list)+len(f.faults) > 0 {
		f.complete(a.svc)
		bad.addAll("body", f.faults)
		return f, o, bad.err()
	}
	if o.IdempotencyKey != "" {
		o.RequestHash = requestHash(submitPath, body)
	}
	return f, o, nil
}

// counted counts so many pushes as invalid if err is a fault of their form,
// which the schedule does not get to see, and returns err.
func (a *api) counted(err error, pushes int) error {
	if _, ok := errors.AsType[*badRequest](err); ok {
		a.svc.CountInvalid(pushes)
	}
	return err
}

// options reads what goes with a submit beside its body.
func (c *call) options(bad *faults) schedule.Options {
	q := readQuery(c.r, bad, "validate_only")
	return schedule.Options{ValidateOnly: q.flag("validate_only"), IdempotencyKey: c.idempotencyKey(bad), Caps: c.caller.Caps, RequestID: c.w.id}
}

// idempotencyKey reads the header: 1 to 255 printable bytes of ASCII.
func (c *call) idempotencyKey(bad *faults) string {
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
	for _, b := range []byte(given[0]) {
		if b < ' ' || b > '~' {
			bad.add(location, "must be printable ASCII", shown(printableASCII(given[0])))
			break
		}
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

func submitDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "submit-push", Method: http.MethodPost, Path: submitPath, Tags: []string{tagPushes},
		Summary: "Submit a push",
		Description: "Books a place in the recipient's quota at send_at and schedules the push for then. If there is no place, nothing is booked and " +
			"the answer says why, and when else there is one; with on_conflict: defer the push moves to the next free time by itself.\n\n" +
			"With an Idempotency-Key the request can be repeated safely: the same key and body get the same push.",
		Parameters:  []*huma.Param{s.validateOnly(), s.idempotencyKey()},
		RequestBody: s.body(newPush{}, exampleRequest()),
		Responses: s.booked(s.responses(http.StatusCreated, "The push is booked.", pushView{}, examplePush(push.Scheduled),
			invalidRequest, quotaExceeded, tenantCap, keyReused, tooLarge, unsupportedMedia)),
	}
}
