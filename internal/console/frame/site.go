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

// Config has optional settings of a console. The zero value is useful.
type Config struct {
	Log       *slog.Logger                   // nil: silent
	Now       func() time.Time               // nil: time.Now
	Computing *bulkhead.Computing[uuid.UUID] // shares processors among tenants that draw pages; nil: no sharing
	Stopping  func() bool                    // reports whether the program is stopping, which ends streams; nil: never

	// APIAddress is the address of the API for the drawer of calls, such as https://api.example.com; empty: the address of the
	// page request.
	APIAddress string

	// FormMemory limits the memory for forms that are being read, in bytes; 0: [DefaultFormMemory].
	FormMemory int64
}

// Authenticator knows the signed-in user of a request and serves the pages for signing in and out.
type Authenticator interface {
	// SignedIn returns the visitor who makes a request; false if no user has signed in.
	SignedIn(r *http.Request) (Visitor, bool)
	// Mount adds the pages that need no sign-in.
	Mount(r chi.Router, s *Site)
	// Wrap returns a handler that serves all pages.
	Wrap(h http.Handler) http.Handler
	// Cookie returns a cookie that lives for a number of seconds, with the attributes of the session cookie. A negative number deletes it.
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
