package pushes

import (
	"net/http"

	"github.com/sendquota/sendquota/internal/rest"
)

// cancel ends a push that still waits. It needs no body; an empty object is taken as none.
func (h *pushes) cancel(c *rest.Call) error {
	p, err := h.writer.Cancel(c.Request.Context(), c.Caller.Tenant, c.ID)
	if err != nil {
		return about(c, err, p)
	}
	showMessage(c, &p)
	return c.Answer(http.StatusOK, viewOf(p))
}
