package console

import (
	"net/http"
	"net/http/httptest"
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

// TestServe_Charset: a form is read also if a script sends it, which names the character set.
func TestServe_Charset(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/schedules/new", strings.NewReader("cron=never"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset=UTF-8")
	b.send(r).has(t, 422, `value="never"`)
}
