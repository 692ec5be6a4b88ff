package frame

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// Paths that other packages use.
const (
	Root       = "/console"
	HomePath   = Root + "/now"
	SignInPath = Root + "/sign-in"
)

// Routes returns a router of all pages.
func (s *Site) Routes() chi.Router {
	router := chi.NewMux()
	router.Get(Root, RedirectTo(HomePath))
	router.Get(Root+"/", RedirectTo(HomePath))
	s.auth.Mount(router, s)
	router.Handle(Root+"/static/*", s.screens.files)
	router.Handle(Root+"/vendor/*", s.screens.files)
	for _, one := range s.screens.rooms {
		if one.Routes != nil {
			one.Routes(Routes{s, router})
		}
	}
	router.NotFound(s.serve("", shortForm, (*Page).notFound))
	router.MethodNotAllowed(s.serve("", shortForm, (*Page).notFound))
	return router
}

// Routes adds the pages of a room, each with the scope that its users need; the empty scope is for all users. If a page makes further
// calls, the API checks their scopes.
type Routes struct {
	site   *Site
	router chi.Router
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
