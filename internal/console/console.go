package console

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// Config is what a console may be told. The zero value is useful.
type Config struct {
	Log       *slog.Logger                   // nil: silent
	Now       func() time.Time               // nil: time.Now
	Computing *bulkhead.Computing[uuid.UUID] // has turns at drawing pages; nil: there is always one
	Stopping  func() bool                    // whether the program is about to stop: streams end then; nil: it never is

	// APIAddress is where programs find the API, such as https://api.example.com, for the drawer of calls; empty: where the
	// request for the page went.
	APIAddress string

	// FormMemory is how many bytes the forms that are being read may take; 0: [DefaultFormMemory].
	FormMemory int64
}

// authenticator knows who has signed in, and serves the pages for signing in and out.
type authenticator interface {
	// visitor returns who makes a request; false: nobody has signed in.
	visitor(r *http.Request) (Visitor, bool)
	// mount adds the pages that are open to everybody.
	mount(r chi.Router, c *console)
	// wrap surrounds all pages.
	wrap(h http.Handler) http.Handler
	// cookie is one that the browser keeps for so many seconds, as safe as that of the session; a negative number: not any more.
	cookie(name, value string, seconds int, site http.SameSite) *http.Cookie
}

// console serves the pages. See [New].
type console struct {
	cfg     Config
	api     http.Handler
	auth    authenticator
	screens screens
	streams *streamPlaces                 // of those that are open
	forms   *bulkhead.Bulkhead[uuid.UUID] // bytes of those that are being read
}

// New returns the console in front of an API that serves /v1.
func New(api http.Handler, auth authenticator, cfg Config) http.Handler {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Stopping == nil {
		cfg.Stopping = func() bool { return false }
	}
	c := &console{cfg: cfg, api: api, auth: auth, screens: allScreens(), streams: newStreamPlaces(maxStreams, maxTenantStreams), forms: newFormMemory(cmp.Or(cfg.FormMemory, DefaultFormMemory))}
	router := chi.NewMux()
	c.routes(router)
	return harden(http.NewCrossOriginProtection().Handler(auth.wrap(router)))
}

// harden sets the headers of every page: it may load and ask for what this program serves, and nothing else.
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

// handler serves one page. An error of the API becomes a page that shows it.
type handler func(p *page) error

// serve returns the handler of a page, for users who have a scope; an empty scope is for all of them. A form has so many bytes at most.
func (c *console) serve(scope string, longest int64, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		who, ok := c.auth.visitor(r)
		if !ok {
			signInFirst(w, r)
			return
		}
		p := c.newPage(w, r, who)
		defer p.recover()
		if scope != "" && !p.May(scope) {
			p.fail(notForRole(scope))
			return
		}
		done, err := p.takeForm(longest)
		if err != nil {
			p.fail(err)
			return
		}
		defer done()
		if err := h(p); err != nil {
			p.fail(err)
		}
	}
}

// signInFirst sends a browser to sign in, and from there back to where it wanted to go. A part of a page, which a script asks
// for, has the script go there. After a form, it is back to the page of the form, as the browser tells it: what was typed is lost.
func signInFirst(w http.ResponseWriter, r *http.Request) {
	to := signInPath
	if r.Method == http.MethodPost {
		to += "?lost=yes"
		if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
			to += "&to=" + url.QueryEscape(from.RequestURI())
		}
	}
	if r.Method == http.MethodGet && r.Header.Get("HX-Request") == "" {
		to += "?to=" + url.QueryEscape(r.URL.RequestURI())
	}
	if r.Header.Get("HX-Request") != "" {
		w.Header().Set("HX-Redirect", to)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, to, http.StatusSeeOther)
}

// recover turns a panic into an error page, if nothing was sent yet.
func (p *page) recover() {
	if v := recover(); v != nil {
		if v == http.ErrAbortHandler {
			panic(v)
		}
		p.fail(errors.Join(errPanic, asError(v)))
	}
}
