package pushes

import (
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// cancel ends a waiting push. It needs no body; an empty object counts as none.
func (h *pushes) cancel(c *rest.Call) error {
	p, err := h.writer.Cancel(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return h.about(c, err, p)
	}
	showMessage(c, &p)
	return c.Answer(http.StatusOK, viewOf(h.texts, p))
}

// moveFields has the members of a push that can be changed: its send time.
var moveFields = rest.Table[schedule.Request]{SchemaName: "NewTime", Refuse: unchangeable, Check: checkNewTime, Fields: []rest.Field[schedule.Request]{
	rest.Row("send_at", rest.Optional, rest.Moment(func(p *schedule.Request, t time.Time) { p.SendAt = t }),
		"The new send time, with a zone. A fraction of a second is rounded up. Required, unless local_time is given.", "2026-12-01T10:00:00Z"),
	PushFields.Described("local_time", "The new send time on the clocks of time_zone, instead of send_at."),
	PushFields.Fields[PushFields.Find("time_zone")],
}}

var moveParams = rest.Table[schedule.Options]{Fields: []rest.Field[schedule.Options]{
	rest.Row("validate_only", rest.Optional, rest.Boolean(func(o *schedule.Options, v bool) { o.ValidateOnly = v }).Or("false"),
		"Return the answer of the real request, but move nothing.", nil),
}}

// checkNewTime requires a new time.
func checkNewTime(p *schedule.Request, errs *rest.FieldErrors) {
	if checkWhen(p, errs); p.SendAt.IsZero() && p.LocalTime.IsZero() && !errs.Has("send_at") && !errs.Has("local_time") {
		errs.Add("send_at", "is required, or local_time", nil)
	}
}

func unchangeable(name string, raw []byte, errs *rest.FieldErrors) bool {
	if PushFields.Find(name) < 0 {
		return false
	}
	errs.AddJSON(name, "cannot be changed; cancel the push and submit another", raw)
	return true
}

// reschedule moves a waiting push to another send time, or answers with the result that the move would have.
func (h *pushes) reschedule(c *rest.Call) error {
	o := schedule.Options{Caps: c.Caller.Caps}
	moveParams.ReadQuery(c.Request, &o, &c.Errors)
	if err := c.Reserve(rest.PushBytes); err != nil {
		return err
	}
	p, found, err := h.forms.read(c, &moveFields)
	if err != nil {
		return err
	}
	moved, err := h.writer.Reschedule(c.Request.Context(), c.Caller.Tenant, c.ID, schedule.When{SendAt: p.SendAt, LocalTime: p.LocalTime, TimeZone: p.TimeZone}, o)
	if err != nil {
		return h.about(c, explain(err, "body", &moveFields, found), moved.Push)
	}
	showMessage(c, &moved.Push)
	return c.Answer(http.StatusOK, bookedView(h.texts, &moved))
}
