package rest

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"
)

// unmatched is the route of requests without one.
const unmatched = "unmatched"

// ServeHTTP gives a request its id and its deadline, serves it, and logs it.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := a.cfg.Now()
	rec := &responseRecorder{ResponseWriter: w, RequestID: requestID(r), Route: unmatched, stopping: a.cfg.Stopping, Whole: r.Context()}
	rec.SetHeader("X-Request-Id", rec.RequestID)
	harden(w.Header(), r.URL.Path)
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.RequestTimeout)
	defer cancel()
	defer a.report(rec, r, began)
	defer a.finish(rec)
	defer a.recover(rec, r)
	a.router.ServeHTTP(rec, r.WithContext(ctx))
}

// requestID returns the caller's X-Request-Id if it is valid, or a new one.
func requestID(r *http.Request) string {
	given := r.Header.Get("X-Request-Id")
	if given != "" && len(given) <= 64 && strings.IndexFunc(given, notInID) < 0 {
		return given
	}
	return uuid.Must(uuid.NewV7()).String()
}

func notInID(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
}

// recover turns a panic into a problem, if the answer has not begun.
func (a *API) recover(rec *responseRecorder, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	a.cfg.Log.ErrorContext(r.Context(), "panic while serving", "request_id", rec.RequestID, "route", rec.Route, "panic", p, "stack", string(debug.Stack()))
	if rec.status != 0 {
		panic(http.ErrAbortHandler) // the caller must not take half an answer for a whole one
	}
	a.sendProblem(rec, unexpected())
}

// report logs and counts an answered request. It never logs bodies, paths or keys.
func (a *API) report(rec *responseRecorder, r *http.Request, began time.Time) {
	took := a.cfg.Now().Sub(began)
	method := knownMethod(r.Method)
	if a.cfg.Observe != nil {
		a.cfg.Observe(rec.Route, method, rec.status, took.Seconds())
	}
	level := slog.LevelInfo
	if a.cfg.Quiet[rec.Route] {
		level = slog.LevelDebug
	}
	if !a.cfg.Log.Enabled(r.Context(), level) {
		return
	}
	attrs := append(make([]slog.Attr, 0, 9),
		slog.String("method", method), slog.String("route", rec.Route), slog.Int("status", rec.status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("request_id", rec.RequestID),
	)
	if rec.tenant != uuid.Nil {
		attrs = append(attrs, slog.String("tenant", rec.tenant.String()))
		if rec.user != uuid.Nil {
			attrs = append(attrs, slog.String("user", rec.user.String()))
		} else {
			attrs = append(attrs, slog.String("key", rec.key.String()))
		}
	}
	switch {
	case rec.about == 1:
		attrs = append(attrs, slog.String("push", rec.pushes[0].String()))
	case rec.about > 1:
		attrs = append(attrs, slog.Any("pushes", rec.pushes), slog.Int("pushes_count", rec.about))
	}
	a.cfg.Log.LogAttrs(r.Context(), level, "request", attrs...)
}

// knownMethod replaces unknown methods, so that they do not appear in metrics and logs.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}
