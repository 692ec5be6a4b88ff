package console

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// The paths that others need to know.
const (
	root       = "/console"
	homePath   = root + "/now"
	signInPath = root + "/sign-in"
)

// Routes returns a router of all pages.
func (s *site) Routes() chi.Router {
	router := chi.NewMux()
	router.Get(root, redirectTo(homePath))
	router.Get(root+"/", redirectTo(homePath))
	s.auth.Mount(router, s)
	router.Handle(root+"/static/*", s.screens.files)
	router.Handle(root+"/vendor/*", s.screens.files)
	for _, one := range s.screens.rooms {
		if one.Routes != nil {
			one.Routes(routes{s, router})
		}
	}
	router.NotFound(s.serve("", shortForm, (*page).notFound))
	router.MethodNotAllowed(s.serve("", shortForm, (*page).notFound))
	return router
}

// routes adds the pages of a room, each with the scope that its users need; the empty scope is for all users. If a page makes further
// calls, the API checks their scopes.
type routes struct {
	site   *site
	router chi.Router
}

// Get adds a page.
func (r routes) Get(path, scope string, h handler) {
	r.router.Get(root+path, r.site.serve(scope, shortForm, h))
}

// Post adds a form of a few fields.
func (r routes) Post(path, scope string, h handler) {
	r.router.Post(root+path, r.site.serve(scope, shortForm, h))
}

// Long adds a form that can be long, such as a message.
func (r routes) Long(path, scope string, h handler) {
	r.router.Post(root+path, r.site.serve(scope, longForm, h))
}

// Form adds a form without a page of its own. A browser that opens its address again, such as after a sign-in, is redirected to the
// page at back.
func (r routes) Form(path, back, scope string, h handler) {
	r.Get(path, "", backTo(back))
	r.Post(path, scope, h)
}

func redirectTo(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusSeeOther) }
}

// backTo leads to the page of a form, whose path has the same parts, with the same query.
func backTo(path string) handler {
	return func(p *page) error {
		to := strings.Replace(root+path, "{id}", pathPart(p.param("id")), 1)
		return p.redirect(withQuery(to, p.r.URL.Query(), nil))
	}
}
