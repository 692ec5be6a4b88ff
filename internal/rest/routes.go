package rest

import (
	"cmp"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"
	"github.com/go-chi/chi/v5"
)

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
