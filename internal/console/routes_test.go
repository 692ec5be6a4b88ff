package console

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
)

// TestRoutes_Pages holds the paths that a browser can open to a list, of which e2e opens every page.
func TestRoutes_Pages(t *testing.T) {
	t.Parallel()
	router := chi.NewMux()
	c := &console{screens: parseScreens(), auth: NewSignIn(nil, SignInConfig{})}
	c.routes(router)
	var pages []string
	err := chi.Walk(router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if method == http.MethodGet && !strings.HasSuffix(route, "/*") { // those are files
			pages = append(pages, route+"\n")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(pages)
	golden(t, "pages.txt", strings.Join(pages, ""))
}
