package httpapi

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/sendquota/sendquota/internal/health"
)

func TestHealth(t *testing.T) {
	fails := func(context.Context) error { return errors.New("down") }
	for _, c := range []struct {
		cfg                      health.Config
		status                   int
		overall, postgres, redis string
	}{
		{health.Config{}, 200, "ready", "ok", "ok"},
		{health.Config{Redis: fails}, 200, "degraded", "ok", "unreachable"},
		{health.Config{Postgres: fails}, 503, "unavailable", "unreachable", "ok"},
		{health.Config{Redis: fails, Stopping: func() bool { return true }}, 503, "stopping", "ok", "unreachable"},
	} {
		r := ask(t, New(nil, everything{}, Config{Health: health.New(c.cfg)}), "GET", "/readyz", "")
		if r.status != c.status || r.at(t, "status") != c.overall || r.at(t, "postgres") != c.postgres || r.at(t, "redis") != c.redis {
			t.Errorf("%d %s, want %+v", r.status, r.text, c)
		}
		if retry := r.header.Get("Retry-After"); (retry != "") != (c.status == 503) {
			t.Errorf("%d with Retry-After: %q", r.status, retry)
		}
	}
	h := New(nil, everything{}, Config{Metrics: http.NotFoundHandler(), Stopping: func() bool { return true }})
	for path, want := range map[string]int{"/healthz": 200, "/docs": 200, "/metrics": 404, "/v1/pushes": 401, "/nothing": 404} {
		if r := ask(t, h, "GET", path, ""); r.status != want || r.header.Get("Connection") != "close" {
			t.Errorf("%s answers %d with Connection: %q while stopping", path, r.status, r.header.Get("Connection"))
		}
	}
	h = New(nil, everything{}, Config{Metrics: http.NotFoundHandler()})
	if r := ask(t, h, "GET", "/healthz", ""); r.status != 200 || r.header.Get("Connection") != "" || r.text != "{\"status\":\"ok\"}\n" {
		t.Errorf("%d %q", r.status, r.text)
	}
	if r := ask(t, h, "GET", "/metrics", ""); r.status != 404 || r.text != "404 page not found\n" {
		t.Errorf("/metrics is not handed on: %s", r.text)
	}
}
