package httpapi

import (
	"net/http"
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
