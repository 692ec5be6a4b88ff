package rest

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// Config configures an API. The zero value is useful.
type Config struct {
	Log            *slog.Logger     // nil: silent
	Now            func() time.Time // nil: time.Now
	RequestTimeout time.Duration    // the longest time of a request; 0: 10 s
	Memory         int64            // bytes of all requests and answers; 0: DefaultMemory

	// Neighbours is notified of every tenant with a request; nil: each tenant counts as alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]
	// Computing gives turns for reading large bodies and writing large answers; nil: no request waits.
	Computing *bulkhead.Computing[uuid.UUID]
	// Callers limits the rate of callers; by default, there is no limit.
	Callers CallerLimits

	// Stopping reports whether the program is about to stop. Every answer then closes its connection; nil: never.
	Stopping func() bool
	// Observe receives every answered request: the pattern of its route ("unmatched" if there is none), its method
	// and status, and its duration in seconds; nil: requests are not observed.
	Observe func(route, method string, status int, seconds float64)

	// Quiet has the routes that are logged at debug level.
	Quiet map[string]bool
	// Problem returns the problem for an error of the domain, or nil; nil: no error has one.
	Problem func(err error) Problemer
}

// API serves requests. See [New].
type API struct {
	keys     *keyCache
	cfg      Config
	encoders *encoders
	memory   memory

	router     *chi.Mux
	huma       huma.API
	operations []*huma.Operation // in the order of the routes
}

// Document returns the OpenAPI document.
func (a *API) Document() *huma.OpenAPI { return a.huma.OpenAPI() }

// Now returns the time by the clock of the API.
func (a *API) Now() time.Time { return a.cfg.Now() }

// New returns an API without operations. Operations with a scope accept the keys that keys knows.
func New(keys Authenticator, doc Document, cfg Config) *API {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.RequestTimeout = cmp.Or(cfg.RequestTimeout, 10*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func() bool { return false }
	}
	if cfg.Problem == nil {
		cfg.Problem = func(error) Problemer { return nil }
	}
	a := &API{keys: newKeyCache(keys, cfg.Now, cfg.Log), cfg: cfg, encoders: newEncoders(), memory: newMemory(cfg.Memory), router: chi.NewMux()}
	a.huma = humachi.New(a.router, huma.Config{OpenAPI: newOpenAPI(doc)})
	a.router.NotFound(a.notFound)
	a.router.MethodNotAllowed(a.methodNotAllowed)
	return a
}

// Add adds operations, and completes the document. The parameters of their paths are params, by the path that ends with each.
func (a *API) Add(s *Spec, params map[string]PathParam, all []Operation) {
	for _, o := range all {
		o.params = pathParams(o.Path, params)
		a.handle(&o, s.operation(&o))
	}
	s.complete(a.Document())
}

// handle documents an operation and serves it. An error becomes a problem.
func (a *API) handle(o *Operation, op *huma.Operation) {
	a.operations = append(a.operations, op)
	a.Document().AddOperation(op)
	handler := func(hc huma.Context) {
		r, w := humachi.Unwrap(hc)
		rec := w.(*responseRecorder)
		rec.Route = op.Path
		c := &Call{api: a, Writer: rec, Request: r, memory: a.memory, Computing: a.cfg.Computing, status: o.Status}
		var err error
		if o.Scope != "" {
			if err = a.admit(rec, c, o.Scope); err == nil {
				err = o.begin(c)
			}
		}
		if err == nil {
			err = o.Serve(c)
		}
		if err != nil {
			a.fail(rec, r, err)
		}
	}
	a.huma.Adapter().Handle(op, handler)
	if op.Method == http.MethodGet {
		head := *op
		head.Method = http.MethodHead
		a.huma.Adapter().Handle(&head, handler)
	}
}

// Page serves a page that is no operation and needs no key; nil: there is no such page.
func (a *API) Page(path string, h http.Handler) {
	if h == nil {
		return
	}
	serve := func(w http.ResponseWriter, r *http.Request) {
		w.(*responseRecorder).Route = path
		h.ServeHTTP(w, r)
	}
	a.router.Get(path, serve)
	a.router.Head(path, serve)
}

// pattern is a method and a path that an API serves.
type pattern struct{ Method, Pattern string }

// Patterns lists the methods and paths that the API serves, pages included.
func (a *API) Patterns() (all []pattern) {
	_ = chi.Walk(a.router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		all = append(all, pattern{method, route})
		return nil
	})
	return all
}

func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	a.miss(w.(*responseRecorder), r, &Refusal{Kind: NotFound, Detail: "the path does not exist; /docs lists all paths"})
}

func (a *API) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := r.URL.RawPath
	if path == "" {
		path = r.URL.Path
	}
	allow := http.Header{}
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
		if a.router.Match(chi.NewRouteContext(), method, path) {
			allow.Add("Allow", method)
		}
	}
	a.miss(w.(*responseRecorder), r, &Refusal{Kind: MethodNotAllowed, Detail: "the path does not support this method", header: allow})
}

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
