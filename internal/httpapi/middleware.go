package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// exchange is one request and its answer: the writer that handlers see, and
// what the log says about it afterwards.
type exchange struct {
	http.ResponseWriter
	id     string    // the X-Request-Id
	route  string    // the pattern, never the path, which holds personal data
	tenant uuid.UUID // Nil until the key is checked
	key    uuid.UUID // as well
	status int       // 0 until the answer begins

	memory       *bulkhead.Loan[uuid.UUID] // for the request and its answer; nil: little is needed
	answer       *encoder                  // what is to be sent; nil: nothing, or it was sent
	answerStatus int
	answerType   string

	pushes []uuid.UUID // that it is about, up to loggedPushes of them
	about  int         // how many these are

	stopping func() bool // see Config
}

// WriteHeader notes the status, and tells the caller to leave if the program is
// about to stop.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 {
		x.status = status
		if x.stopping() {
			x.Header().Set("Connection", "close")
		}
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(b []byte) (int, error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	return x.ResponseWriter.Write(b)
}

// Unwrap is for http.ResponseController.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// loggedPushes bounds the ids in one line of the log, which all tenants share.
const loggedPushes = 20

// note has the log say that the request is about a push.
func (c *call) note(id uuid.UUID) {
	x := c.w
	if x.about++; x.about <= loggedPushes {
		x.pushes = append(x.pushes, id)
	}
}

// unmatched is the route of requests that have none.
const unmatched = "unmatched"

// ServeHTTP gives a request its id and its deadline, has the router serve it,
// and reports on it.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := a.now()
	x := &exchange{ResponseWriter: w, id: requestID(r), route: unmatched, stopping: a.cfg.Stopping}
	w.Header().Set("X-Request-Id", x.id)
	harden(w.Header(), r.URL.Path)
	ctx, cancel := context.WithTimeout(r.Context(), a.cfg.RequestTimeout)
	defer cancel()
	defer a.report(x, r, began)
	defer a.finish(x)
	defer a.recover(x, r)
	a.router.ServeHTTP(x, r.WithContext(ctx))
}

// requestID takes the caller's id if it is harmless, or makes one.
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
func (a *api) recover(x *exchange, r *http.Request) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler {
		panic(p)
	}
	a.log.ErrorContext(r.Context(), "panic while serving", "request_id", x.id, "route", x.route, "panic", p, "stack", string(debug.Stack()))
	if x.status != 0 {
		panic(http.ErrAbortHandler) // the caller must not take half an answer for a whole one
	}
	unforeseen, _ := plainProblemOf(nil)
	a.sendProblem(x, unforeseen)
}

// report logs and counts an answered request. It never shows bodies, paths or
// keys.
func (a *api) report(x *exchange, r *http.Request, began time.Time) {
	took := a.now().Sub(began)
	method := knownMethod(r.Method)
	if a.cfg.Observe != nil {
		a.cfg.Observe(x.route, method, x.status, took.Seconds())
	}
	level := slog.LevelInfo
	if x.route == healthPath || x.route == readyPath || x.route == metricsPath {
		level = slog.LevelDebug
	}
	if !a.log.Enabled(r.Context(), level) {
		return
	}
	attrs := []slog.Attr{
		slog.String("method", method), slog.String("route", x.route), slog.Int("status", x.status),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000), slog.String("request_id", x.id),
	}
	if x.tenant != uuid.Nil {
		attrs = append(attrs, slog.String("tenant", x.tenant.String()), slog.String("key", x.key.String()))
	}
	switch {
	case x.about == 1:
		attrs = append(attrs, slog.String("push", x.pushes[0].String()))
	case x.about > 1:
		attrs = append(attrs, slog.Any("pushes", x.pushes), slog.Int("pushes_count", x.about))
	}
	a.log.LogAttrs(r.Context(), level, "request", attrs...)
}

// knownMethod keeps invented methods out of metrics and logs.
func knownMethod(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return method
	}
	return "OTHER"
}
