package httpapi

import (
	"net/http"
)

// cancel ends a push that still waits. It needs no body; an empty object is taken as none.
func (a *api) cancel(c *call) error {
	p, err := a.svc.Cancel(c.r.Context(), c.caller.Tenant, c.id)
	if err != nil {
		return c.about(err, p)
	}
	c.showMessage(&p)
	return a.answer(c.w, http.StatusOK, viewOf(p))
}
