package pushes

import (
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// checkFields is the body of a quota check: the members that the quota depends on.
var checkFields = rest.Table[schedule.Request]{SchemaName: "Question", Check: checkQuestion, Fields: []rest.Field[schedule.Request]{
	PushFields.Described("recipient", "The person whose quota is checked."),
	PushFields.Described("channel", "Default: the first channel that is configured."),
	PushFields.Described("category", ""),
	PushFields.Described("send_at", "The intended send time, with a zone. Default: now."),
	PushFields.Described("local_time", "The intended send time on the clocks of time_zone, instead of send_at."),
	PushFields.Fields[PushFields.Find("time_zone")],
	rest.Row("message", rest.Optional, rest.AnyObject(func(p *schedule.Request, raw []byte) { p.Message = raw }).Shaped(&MessageFields),
		"The intended content. If it is given, it is checked as in a submit, and the text of an SMS is measured. The quota does not depend on it.", nil),
	PushFields.Described("template", "Every string in message is a Liquid template. Only with message."),
	PushFields.Fields[PushFields.Find("variables")],
}}

// checkQuestion adds errors that concern several members of a check.
func checkQuestion(p *schedule.Request, errs *rest.FieldErrors) {
	checkPush(p, errs)
	if p.Template && p.Message == nil && !errs.Has("message") {
		errs.Add("template", "must not be given without message", true)
	}
}

// checkView is the decision that a submit would get.
type checkView struct {
	Allowed             bool               `json:"allowed"`
	Violations          []violationView    `json:"violations"`
	Paused              bool               `json:"paused" doc:"A pause stops such pushes now. They are still booked."`
	OptedOut            *optOutsView       `json:"opted_out,omitempty" doc:"The recipient's opt-outs that forbid the push; only if there are any."`
	Suppression         *suppressedForView `json:"suppression,omitempty" doc:"The suppression of the address; only if there is one. Then no time is free."`
	NextAvailableAt     *string            `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time at or after the requested one; null if there is none, as for a recipient who has opted out."`
	SMS                 *SMSView           `json:"sms,omitempty" doc:"The size of the text of message. Absent without message, or if the channel sends no text messages."`
	PreviousAvailableAt *string            `json:"previous_available_at" format:"date-time" nullable:"true" doc:"The last free time at or before the requested one; null if none lies in the future."`
}

// check answers with the decision that a push would get. It books nothing.
func (h *quotas) check(c *rest.Call) error {
	p, read, err := h.forms.read(c, &checkFields)
	if err != nil {
		return err
	}
	found, err := h.svc.Check(c.Request.Context(), c.Caller.Tenant, p)
	if err != nil {
		return explain(err, "body", &checkFields, read)
	}
	return c.Answer(http.StatusOK, checkView{
		Allowed: found.Allowed(), Violations: violationViews(found.Violations, found.SendAt), Paused: found.Paused, OptedOut: optedOutOf(found), Suppression: suppressionOf(found),
		NextAvailableAt: rest.MaybeTime(found.Next), PreviousAvailableAt: rest.MaybeTime(found.Previous),
		SMS: h.sizeOf(c.Caller.Tenant, found),
	})
}

// sizeOf shows the size of the text of a check with a message.
func (h *quotas) sizeOf(tenant uuid.UUID, found *schedule.Answer) *SMSView {
	if found.Message == nil {
		return nil
	}
	return SMSViewOf(h.texts, tenant, found.Channel, found.Message)
}

// suppressionOf shows the suppression of the address of a push, or nil.
func suppressionOf(found *schedule.Answer) *suppressedForView {
	if found.Suppressed == nil {
		return nil
	}
	return suppressedForViewOf(found.Suppressed)
}

// optedOutOf shows the opt-outs that forbid a push, or nil.
func optedOutOf(found *schedule.Answer) *optOutsView {
	if !found.OptedOut.Any() {
		return nil
	}
	return optOutsViewOf(found.OptedOut)
}
