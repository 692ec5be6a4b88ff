package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/health"
)

const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
)

// healthView says that the process is alive.
type healthView struct {
	Status string `json:"status" enum:"ok"`
}

func (a *api) health(c *call) error {
	return a.answer(c.w, http.StatusOK, healthView{Status: "ok"})
}

// ready says whether requests are to be sent here.
func (a *api) ready(c *call) error {
	r := a.cfg.Health.Check(c.r.Context())
	if r.Serves() {
		return a.answer(c.w, http.StatusOK, r)
	}
	c.w.Header().Set("Retry-After", "1")
	return a.answer(c.w, http.StatusServiceUnavailable, r)
}

func healthDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: healthPath, Tags: []string{tagOperations},
		Summary:   "Is the process alive?",
		Responses: s.responses(http.StatusOK, "It is.", healthView{}, healthView{Status: "ok"}),
	}
}

func readyDoc(s *spec) *huma.Operation {
	example := health.Report{Status: health.Ready, Postgres: "ok", Redis: "ok", Queue: "ok"}
	responses := s.responses(http.StatusOK, "It can. Where Redis is away, or pushes are overdue, the status is degraded.", example, example)
	example = health.Report{Status: health.Unavailable, Postgres: "not_migrated", Redis: "ok", Queue: "unknown"}
	responses["503"] = s.response("Postgres does not answer, or can not do what is needed of it; or the program is about to stop.", example, example)
	return &huma.Operation{
		OperationID: "ready", Method: http.MethodGet, Path: readyPath, Tags: []string{tagOperations},
		Summary:   "Can it serve requests?",
		Responses: responses,
	}
}
