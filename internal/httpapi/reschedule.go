package httpapi

import (
	"net/http"
	"time"
)

// moveFields has the only member of a push that can be changed.
var moveFields = table[form]{schemaName: "NewTime", refuse: unchangeable, fields: []field[form]{
	{"send_at", required, moment(func(f *form, t time.Time) { f.SendAt = t }),
		"When to send instead, with a zone. A fraction of a second is rounded up.", "2026-12-01T10:00:00Z"},
}}

func unchangeable(name string, raw []byte, errs *fieldErrors) bool {
	if pushFields.find(name) < 0 {
		return false
	}
	errs.addJSON(name, "can not be changed; cancel the push and submit another", raw)
	return true
}

// reschedule moves a push that still waits to another send time.
func (a *api) reschedule(c *call) error {
	var bad fieldErrors
	c.noQuery(&bad)
	id := c.pushID(&bad)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	f, _, err := a.readForm(c, &moveFields, &bad)
	if err != nil {
		return err
	}
	res, err := a.svc.Reschedule(c.r.Context(), c.caller.Tenant, id, f.SendAt, c.caller.Caps)
	if err != nil {
		return &aboutPush{error: f.explain("body", err), push: res.Push}
	}
	return a.answer(c.w, http.StatusOK, bookedView(res))
}
