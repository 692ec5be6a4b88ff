package frame

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
)

// New returns the pages of sections, with a menu, in front of an API that serves /v1.
func New(api http.Handler, auth Authenticator, drawn *Screens, menu []NavItem, cfg Config) *Site {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func() bool { return false }
	}
	return &Site{
		cfg: cfg, api: api, auth: auth, screens: drawn, menu: menu,
		streams: newStreamPlaces(maxStreams, maxTenantStreams), forms: newFormMemory(cmp.Or(cfg.FormMemory, DefaultFormMemory)),
	}
}

// Handler serves all pages.
func (s *Site) Handler() http.Handler {
	return harden(http.NewCrossOriginProtection().Handler(s.auth.Wrap(s.Routes())))
}

// harden sets the headers of every page. A page can load and request only what this program serves.
func harden(h http.Handler) http.Handler {
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("X-Frame-Options", "DENY")
		header.Set("Referrer-Policy", "same-origin")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}

// Routes returns a router of all pages.
func (s *Site) Routes() chi.Router {
	router := chi.NewMux()
	router.Get(Root, RedirectTo(HomePath))
	router.Get(Root+"/", RedirectTo(HomePath))
	s.auth.Mount(router, s)
	router.Handle(Root+"/static/*", s.screens.files)
	router.Handle(Root+"/vendor/*", s.screens.files)
	for _, one := range s.screens.sections {
		if one.Routes != nil {
			one.Routes(Routes{s, router})
		}
	}
	router.NotFound(s.serve("", shortForm, (*Page).notFound))
	router.MethodNotAllowed(s.serve("", shortForm, (*Page).notFound))
	return router
}

// Get adds a page.
func (r Routes) Get(path, scope string, h Handler) {
	r.router.Get(Root+path, r.site.serve(scope, shortForm, h))
}

// Post adds a form of a few fields.
func (r Routes) Post(path, scope string, h Handler) {
	r.router.Post(Root+path, r.site.serve(scope, shortForm, h))
}

// Long adds a form that can be long, such as a message.
func (r Routes) Long(path, scope string, h Handler) {
	r.router.Post(Root+path, r.site.serve(scope, longForm, h))
}

// Form adds a form without a page of its own. A browser that opens its address again, such as after a sign-in, is redirected to the
// page at back.
func (r Routes) Form(path, back, scope string, h Handler) {
	r.Get(path, "", BackTo(back))
	r.Post(path, scope, h)
}

func RedirectTo(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusSeeOther) }
}

// BackTo redirects to the page of a form with the same id and query.
func BackTo(path string) Handler {
	return func(p *Page) error {
		to := strings.Replace(Root+path, "{id}", PathPart(p.Param("id")), 1)
		return p.Redirect(WithQuery(to, p.Request.URL.Query(), nil))
	}
}
