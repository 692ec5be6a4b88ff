// Package frame is what all sections of the console share: pages, forms, times, calls of the REST API, streams and routes.
package frame

import (
	"html/template"
	"io/fs"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// Paths that other packages use.
const (
	Root       = "/console"
	HomePath   = Root + "/now"
	SignInPath = Root + "/sign-in"
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

// Visitor is a user who has signed in.
type Visitor struct {
	Caller push.Caller // with the scopes of the role
	Name   string      // for display
	Role   string

	Session uuid.UUID // id of the session, which is not a secret
}

// May reports whether the user's role has a scope. Pages do not offer actions without it.
func (v Visitor) May(scope string) bool { return v.Caller.May(scope) }

// MayWrite and the following methods are for templates.
func (v Visitor) MayWrite() bool { return v.May(push.ScopeWrite) }

func (v Visitor) MayCampaigns() bool { return v.May(push.ScopeCampaignsWrite) }

func (v Visitor) MayPolicy() bool { return v.May(push.ScopePolicyWrite) }

func (v Visitor) MayKeys() bool { return v.May(push.ScopeKeysWrite) }

func (v Visitor) MayHooks() bool { return v.May(push.ScopeHooks) }

func (v Visitor) MayUsers() bool { return v.May(push.ScopeUsersWrite) }

func (v Visitor) MayRecipients() bool { return v.May(push.ScopeRecipientsWrite) }

// MayDraft and MayStart report whether the role can draft campaigns, and start them.
func (v Visitor) MayDraft() bool { return v.May(push.ScopeCampaignsDraft) }

func (v Visitor) MayStart() bool { return v.May(push.ScopeCampaignsWrite) }

// NavItem is an entry of the menu.
type NavItem struct{ Path, Name, Scope string }

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

// Page is one request for a page. Templates are executed with a Page, and its field Main has the view of the screen.
type Page struct {
	Title string
	Visitor
	Form
	Main    any
	Notice  string          // what a form has just done
	Problem *client.Problem // why the form was not accepted
	Place   client.NoPlace  // the next free time, if a send time has none

	Drawn template.HTML // the drawn main part

	site   *Site
	Writer http.ResponseWriter
	API    *client.Client
	Made   *inProcess
	Sent   bool

	flash   flash // from the previous page
	Stopped Stopped
}

// Section is a part of the console: its pages, with their templates and the functions that these call.
type Section struct {
	Templates fs.FS // with templates/*.html; templates/parts.html is shared by the screens of the section
	Functions template.FuncMap
	Routes    func(Routes)
}

// Screens holds the templates of all screens by the name of their file, and the files that they load.
type Screens struct {
	sections  []Section
	templates map[string]*template.Template
	files     *assets.Files
}

// Handler serves one page. It returns errors of the API, which the console shows as a page.
type Handler func(p *Page) error

// Routes adds the pages of a section, each with the scope that its users need; the empty scope is for all users. If a page makes further
// calls, the API checks their scopes.
type Routes struct {
	site   *Site
	router chi.Router
}
