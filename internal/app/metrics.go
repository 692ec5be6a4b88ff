package app

import (
	"encoding/json"
	"fmt"
	"net/http"
)

// metricsOnly returns the handler of a worker: its metrics, its profiles, /healthz and /readyz.
func (a *App) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	profiles(mux)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report := a.health.Check(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if !report.Serves() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(report) // a caller that went away needs no answer
	})
	return mux
}
