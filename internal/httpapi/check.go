package httpapi

import (
	"net/http"

	"github.com/sendquota/sendquota/internal/schedule"
)

// checkFields is a quota check: what a quota depends on.
var checkFields = table[form]{schemaName: "Question", check: checkWhen, fields: []field[form]{
	pushFields.described("recipient", "The person whose quota is checked."),
	pushFields.described("channel", "Default: the first channel that is configured."),
	pushFields.described("category", ""),
	pushFields.described("send_at", "The intended send time, with a zone. Default: now."),
	pushFields.described("local_time", "The intended send time on the clocks of time_zone, instead of send_at."),
	pushFields.fields[pushFields.find("time_zone")],
}}

// checkView is what a submit would meet.
type checkView struct {
	Allowed             bool            `json:"allowed"`
	Violations          []violationView `json:"violations"`
	OptedOut            *optOutsView    `json:"opted_out,omitempty" doc:"The recipient's opt-outs that forbid the push; only if there are any."`
	NextAvailableAt     *string         `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time at or after the requested one; null if there is none, as for a recipient who has opted out."`
	PreviousAvailableAt *string         `json:"previous_available_at" format:"date-time" nullable:"true" doc:"The last free time at or before the requested one; null if none lies in the future."`
}

// check says whether a push would find a place. It books nothing.
func (h *quotas) check(c *call) error {
	f, _, err := h.forms.read(c, &checkFields, &c.bad)
	if err != nil {
		return err
	}
	found, err := h.svc.Check(c.r.Context(), c.caller.Tenant, f.Request)
	if err != nil {
		return f.explain("body", err)
	}
	return c.answer(http.StatusOK, checkView{
		Allowed: found.Allowed(), Violations: violationViews(found.Violations, found.SendAt), OptedOut: optedOutOf(found),
		NextAvailableAt: maybe(found.Next), PreviousAvailableAt: maybe(found.Previous),
	})
}

// optedOutOf shows the opt-outs that a push would go against; nil: there are none.
func optedOutOf(found *schedule.Answer) *optOutsView {
	if !found.OptedOut.Any() {
		return nil
	}
	return optOutsViewOf(found.OptedOut)
}
