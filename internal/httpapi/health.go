package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/health"
)

// probes answers whether the process is alive and ready.
type probes struct{ health *health.Checker }

// healthView reports that the process is alive.
type healthView struct {
	Status string `json:"status" enum:"ok"`
}

func (h *probes) alive(c *call) error {
	return c.answer(http.StatusOK, healthView{Status: "ok"})
}

// ready reports whether requests can be sent to this process.
func (h *probes) ready(c *call) error {
	r := h.health.Check(c.r.Context())
	if r.Serves() {
		return c.answer(http.StatusOK, r)
	}
	c.header("Retry-After", "1")
	return c.answer(http.StatusServiceUnavailable, r)
}

func (h *probes) routes(s *spec) []operation {
	return []operation{{
		id: "health", method: http.MethodGet, path: healthPath, tag: tagOperations, serve: h.alive,
		summary: "Report that the process is alive", status: http.StatusOK, answer: "The process is alive.", example: healthView{Status: "ok"},
	}, {
		id: "ready", method: http.MethodGet, path: readyPath, tag: tagOperations, serve: h.ready,
		summary: "Report whether the process can serve requests",
		status:  http.StatusOK, answer: "The process can serve requests. If Redis is unreachable, or pushes are overdue, the status is degraded.",
		example: health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"},
		finish: func(all map[string]*huma.Response) {
			all["503"] = s.response("Postgres does not answer or cannot be used, or the program is stopping.",
				health.Report{Status: health.Unavailable, Postgres: "not_migrated", Redis: "ok", Queue: "unknown"})
		},
	}}
}
