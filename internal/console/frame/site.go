package frame

import (
	"cmp"
	"log/slog"
	"net/http"
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

// Authenticator knows who has signed in, and serves the pages for signing in and out.
type Authenticator interface {
	// SignedIn returns the visitor who makes a request; false: no user has signed in.
	SignedIn(r *http.Request) (Visitor, bool)
	// Mount adds the pages that are open to everybody.
	Mount(r chi.Router, s *Site)
	// Wrap surrounds all pages.
	Wrap(h http.Handler) http.Handler
	// Cookie is one that the browser keeps for so many seconds, as safe as that of the session; a negative number: not any more.
	Cookie(name, value string, seconds int, site http.SameSite) *http.Cookie
}

// Site serves the pages of the console.
type Site struct {
	cfg     Config
	api     http.Handler
	auth    Authenticator
	screens *Screens
	menu    []NavItem
	streams *streamPlaces                 // of the open streams
	forms   *bulkhead.Bulkhead[uuid.UUID] // bytes of the forms that are being read
}

// New returns the pages of rooms, with a menu, in front of an API that serves /v1.
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
