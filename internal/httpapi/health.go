package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"
)

// pingTime is how long a server may take to show that it is there.
const pingTime = 2 * time.Second

// healthView says that the process is alive.
type healthView struct {
	Status string `json:"status" enum:"ok"`
}

// readyView says what the API stands on.
type readyView struct {
	Status   string `json:"status" enum:"ready,degraded,unavailable,stopping" doc:"degraded: without Redis everything works, only slower. stopping: send requests elsewhere."`
	Postgres string `json:"postgres" enum:"ok,unreachable"`
	Redis    string `json:"redis" enum:"ok,unreachable" doc:"unreachable: it does not answer, or does not write and run scripts."`
}

func (a *api) health(c *call) error {
	return a.answer(c.w, http.StatusOK, healthView{Status: "ok"})
}

// ready asks Postgres and Redis at the same time.
func (a *api) ready(c *call) error {
	ctx, cancel := context.WithTimeout(c.r.Context(), pingTime)
	defer cancel()
	redis := make(chan string, 1)
	go func() { redis <- reach(ctx, a.cfg.Redis) }()
	v := readyView{Status: "ready", Postgres: reach(ctx, a.cfg.Postgres), Redis: <-redis}
	switch {
	case a.cfg.Stopping():
		v.Status = "stopping"
	case v.Postgres != reachable:
		v.Status = "unavailable"
	case v.Redis != reachable:
		v.Status = "degraded"
		return a.answer(c.w, http.StatusOK, v)
	default:
		return a.answer(c.w, http.StatusOK, v)
	}
	c.w.Header().Set("Retry-After", "1")
	return a.answer(c.w, http.StatusServiceUnavailable, v)
}

const reachable = "ok"

func reach(ctx context.Context, ping func(context.Context) error) string {
	if ping != nil && ping(ctx) != nil {
		return "unreachable"
	}
	return reachable
}

func healthDoc(s *sketch) *huma.Operation {
	return &huma.Operation{
		OperationID: "health", Method: http.MethodGet, Path: healthPath, Tags: []string{tagOperations},
		Summary:   "Is the process alive?",
		Responses: s.responses(http.StatusOK, "It is.", healthView{}, healthView{Status: "ok"}),
	}
}

func readyDoc(s *sketch) *huma.Operation {
	responses := s.responses(http.StatusOK, "Postgres answers. Without Redis the status is degraded.", readyView{}, readyView{"ready", reachable, reachable})
	responses["503"] = s.response("Postgres does not answer, or the program is about to stop.", readyView{}, readyView{"unavailable", "unreachable", reachable})
	return &huma.Operation{
		OperationID: "ready", Method: http.MethodGet, Path: readyPath, Tags: []string{tagOperations},
		Summary:   "Can it serve requests?",
		Responses: responses,
	}
}
