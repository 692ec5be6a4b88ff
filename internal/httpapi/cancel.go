package httpapi

import (
	"net/http"
)

// cancel ends a push that still waits. It needs no body; an empty object is taken as none.
func (h *pushes) cancel(c *call) error {
	p, err := h.writer.Cancel(c.r.Context(), c.caller.Tenant, c.id)
	if err != nil {
		return about(c, err, p)
	}
	showMessage(c, &p)
	return c.answer(http.StatusOK, viewOf(p))
}
