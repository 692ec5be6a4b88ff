package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/push"
)

// newTime is the schema of a move.
type newTime struct {
	SendAt string `json:"send_at" format:"date-time" doc:"When to send instead, with a zone. A fraction of a second is rounded up." example:"2026-12-01T10:00:00Z"`
}

// reschedule moves a push that still waits to another send time.
func (a *api) reschedule(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	id := c.pushID(&bad)
	var (
		f        form
		isObject bool
	)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	if _, err := c.object(maxBody, &bad, func(r *reader) { f, isObject = readMove(r), true }); err != nil {
		return err
	}
	if len(bad.list)+len(f.faults) > 0 {
		if isObject && !f.faulty("send_at") {
			f.complete(a.svc)
		}
		bad.addAll("body", f.faults)
		return bad.err()
	}
	res, err := a.svc.Reschedule(c.r.Context(), c.caller.Tenant, id, f.SendAt, c.caller.Caps)
	if err != nil {
		return &aboutPush{error: f.explain("body", err), push: res.Push}
	}
	return a.answer(c.w, http.StatusOK, bookedView(res))
}

// readMove reads the only member that can be changed.
func readMove(r *reader) form {
	var f form
	given := false
	for name := range r.members {
		raw := r.value()
		switch {
		case r.err != nil:
			return f
		case string(name) == "send_at":
			given = true
			f.SendAt, f.sendAt = f.time("send_at", raw)
		case isFieldOfPush(name):
			f.bad(string(name), "can not be changed; cancel the push and submit another", raw)
		default:
			f.unknown(name, raw)
		}
	}
	if !given {
		f.missing("send_at")
	}
	return f
}

func isFieldOfPush(name []byte) bool {
	switch string(name) {
	case "recipient", "message", "channel", "category", "to", "expires_at", "on_conflict", "latest", "metadata":
		return true
	}
	return false
}

func rescheduleDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "reschedule-push", Method: http.MethodPatch, Path: "/v1/pushes/{id}", Tags: []string{tagPushes},
		Summary: "Move a push to another send time",
		Description: "The push's own place is no obstacle to its new one. If the new time is refused, the old place is kept. An expiry that was not fixed " +
			"by the caller moves along.",
		Parameters:  []*huma.Param{s.pushID()},
		RequestBody: s.body(newTime{}, map[string]any{"send_at": "2026-12-01T10:00:00Z"}),
		Responses: s.responses(http.StatusOK, "The push at its new time.", pushView{}, examplePush(push.Scheduled),
			invalidRequest, notFound, quotaExceeded, tenantCap, notReschedulable, tooLarge, unsupportedMedia),
	}
}
