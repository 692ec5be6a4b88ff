package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/rest"
)

// probes answers whether the process is alive and ready.
type probes struct{ health *health.Checker }

// healthView reports that the process is alive.
type healthView struct {
	Status string `json:"status" enum:"ok"`
}

func (h *probes) alive(c *rest.Call) error {
	return c.Answer(http.StatusOK, healthView{Status: "ok"})
}

// ready reports whether requests can be sent to this process.
func (h *probes) ready(c *rest.Call) error {
	r := h.health.Check(c.Request.Context())
	if r.Serves() {
		return c.Answer(http.StatusOK, r)
	}
	c.Header("Retry-After", "1")
	return c.Answer(http.StatusServiceUnavailable, r)
}

func (h *probes) routes(s *rest.Spec) []rest.Operation {
	return []rest.Operation{{
		ID: "health", Method: http.MethodGet, Path: healthPath, Tag: tagOperations, Serve: h.alive,
		Summary: "Report that the process is alive", Status: http.StatusOK, Answer: "The process is alive.", Example: healthView{Status: "ok"},
	}, {
		ID: "ready", Method: http.MethodGet, Path: readyPath, Tag: tagOperations, Serve: h.ready,
		Summary: "Report whether the process can serve requests",
		Status:  http.StatusOK, Answer: "The process can serve requests. If Redis is unreachable, or pushes are overdue, the status is degraded.",
		Example: health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"},
		Finish: func(all map[string]*huma.Response) {
			all["503"] = s.Response("Postgres does not answer or cannot be used, or the program is stopping.",
				health.Report{Status: health.Unavailable, Postgres: "not_migrated", Redis: "ok", Queue: "unknown"})
		},
	}}
}
