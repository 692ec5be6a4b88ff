package console

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/console/golden"

	"github.com/go-chi/chi/v5"
)

// TestRoutes_Pages compares the paths of all pages with a list. e2e opens every page of the list.
func TestRoutes_Pages(t *testing.T) {
	t.Parallel()
	router := frame.New(nil, NewSignIn(nil, SignInConfig{}), allScreens(), menu, frame.Config{}).Routes()
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
	golden.Compare(t, "pages.txt", strings.Join(pages, ""))
}

// TestRoutes_FormsLeadBack: whatever a form is sent to can be opened, too: its answer has links to itself, as to other clocks, and whoever
// has to sign in goes there afterwards.
func TestRoutes_FormsLeadBack(t *testing.T) {
	t.Parallel()
	router := frame.New(nil, NewSignIn(nil, SignInConfig{}), allScreens(), menu, frame.Config{}).Routes()
	found := map[string]map[string]bool{}
	err := chi.Walk(router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if found[route] == nil {
			found[route] = map[string]bool{}
		}
		found[route][method] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	forms := 0
	for route, methods := range found {
		if !methods[http.MethodPost] {
			continue
		}
		if forms++; !methods[http.MethodGet] {
			t.Errorf("%s takes a form, and cannot be opened", route)
		}
	}
	if forms < 30 {
		t.Errorf("%d forms were checked", forms)
	}

	b := setup(t)
	for path, want := range map[string]string{
		"/settings/keys/k/rotate?tz=utc":          "/settings/keys?tz=utc",
		"/campaigns/c%2F1/audience/columns":       "/campaigns/c%2F1/audience",
		"/recipients/a%20b/submit?tz=utc&cursor=": "/recipients/a%20b?cursor=&tz=utc",
		"/policy/delete?tz=recipient":             "/policy?tz=recipient",
	} {
		if answer := b.get(frame.Root + path); answer.Status != http.StatusSeeOther || answer.Header.Get("Location") != frame.Root+want {
			t.Errorf("%s leads to %d %s, want %s", path, answer.Status, answer.Header.Get("Location"), want)
		}
	}
	answer := b.post("/console/settings/keys/k/rotate", "overlap", "long")
	link := regexp.MustCompile(`href="([^"]*/rotate\?tz=utc)"`).FindStringSubmatch(answer.Body)
	if link == nil {
		t.Fatalf("the answer has no link to other clocks: %s", answer.text())
	}
	b.follow(b.get(link[1])).has(t, 200, "API keys")
}

// TestServe_TooLong explains a form that is too long.
func TestServe_TooLong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.post("/console/pushes/new", "message.body", strings.Repeat("x", 1<<20)).has(t, 413, "The form is too long", "1 MiB", "Nothing was changed")
}

// TestServe_Charset: a form is read also if a script sends it, which names the character set.
func TestServe_Charset(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/schedules/new", strings.NewReader("cron=never"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset=UTF-8")
	b.send(r).has(t, 422, `value="never"`)
}
