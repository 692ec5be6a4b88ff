package httpapi

import (
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/schedule"
)

// moveFields has what can be changed of a push: when it is sent.
var moveFields = table[form]{schemaName: "NewTime", refuse: unchangeable, check: checkNewTime, fields: []field[form]{
	row("send_at", optional, moment(func(f *form, t time.Time) { f.SendAt = t }),
		"The new send time, with a zone. A fraction of a second is rounded up. Required, unless local_time is given.", "2026-12-01T10:00:00Z"),
	pushFields.described("local_time", "The new send time on the clocks of time_zone, instead of send_at."),
	pushFields.fields[pushFields.find("time_zone")],
}}

var moveParams = table[schedule.Options]{fields: []field[schedule.Options]{
	row("validate_only", optional, boolean(func(o *schedule.Options, v bool) { o.ValidateOnly = v }).or("false"),
		"Return the answer of the real request, but move nothing.", nil),
}}

// checkNewTime wants a new time.
func checkNewTime(f *form, text []byte, errs *fieldErrors) {
	if checkWhen(f, text, errs); f.SendAt.IsZero() && f.LocalTime.IsZero() && !errs.has("send_at") && !errs.has("local_time") {
		errs.add("send_at", "is required, or local_time", nil)
	}
}

func unchangeable(name string, raw []byte, errs *fieldErrors) bool {
	if pushFields.find(name) < 0 {
		return false
	}
	errs.addJSON(name, "cannot be changed; cancel the push and submit another", raw)
	return true
}

// reschedule moves a push that still waits to another send time, or says what that would do.
func (h *pushes) reschedule(c *call) error {
	o := schedule.Options{Caps: c.caller.Caps}
	moveParams.readQuery(c.r, &o, &c.bad)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	f, _, err := h.forms.read(c, &moveFields, &c.bad)
	if err != nil {
		return err
	}
	res, err := h.writer.Reschedule(c.r.Context(), c.caller.Tenant, c.id, schedule.When{SendAt: f.SendAt, LocalTime: f.LocalTime, TimeZone: f.TimeZone}, o)
	if err != nil {
		return about(c, f.explain("body", err), res.Push)
	}
	showMessage(c, &res.Push)
	return c.answer(http.StatusOK, bookedView(res))
}
