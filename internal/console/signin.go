package console

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// signInStore knows the users who can sign in. A user who cannot is [push.ErrNotFound].
type signInStore interface {
	sessionStore
	passwordStore
	linkStore
	externalStore
}

// passwordStore has the passwords of users, as hashes.
type passwordStore interface {
	Credentials(ctx context.Context, email, tenantName string) ([]user.Credential, error)
	Secret(ctx context.Context) ([]byte, error)
}

// linkStore has the links to set a password, by their hashes.
type linkStore interface {
	UserByLink(ctx context.Context, link [32]byte) (user.User, error)
	SetPassword(ctx context.Context, link [32]byte, phc string) (user.User, error)
}

// externalStore has the users of an OpenID Connect provider.
type externalStore interface {
	ExternalUser(ctx context.Context, e user.External) (user.User, error)
	Tenant(ctx context.Context, name string) (uuid.UUID, error)
}

// SignInConfig has optional settings of sign-in. The zero value is useful.
type SignInConfig struct {
	Log       *slog.Logger     // nil: silent
	Now       func() time.Time // nil: time.Now
	PublicURL string           // where browsers find the console, without a path; https binds cookies to the host
	Lifetime  time.Duration    // lifetime of a session; 0: 12 h
	Idle      time.Duration    // lifetime of an idle session; 0: 2 h

	Limiter  limiter                    // of sign-ins; nil: there are no limits
	Address  func(*http.Request) string // of the browser; nil: of the connection
	OIDC     OIDC
	MaxUsers int // that a tenant may have, for users of the provider; 0: any number
}

// passwords hashes passwords, and compares them with hashes.
type passwords interface {
	Hash(ctx context.Context, address string, salt user.Salt, password string) (phc string, err error)
	Match(ctx context.Context, address string, salt user.Salt, hashes []string, password string) (int, error)
}

// SignIn signs users in and out and knows the signed-in user of a request. It is the authenticator for [New].
type SignIn struct {
	store     signInStore
	cfg       SignInConfig
	sessions  *scs.SessionManager
	lookups   *bulkhead.Bulkhead[string] // of sessions, by the browser's address
	passwords passwords
	provider  *provider // nil: there is none
}

// NewSignIn returns the sign-in of the users in a store.
func NewSignIn(store signInStore, cfg SignInConfig) *SignIn {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	cfg.Lifetime, cfg.Idle = cmp.Or(cfg.Lifetime, 12*time.Hour), cmp.Or(cfg.Idle, 2*time.Hour)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Address == nil {
		cfg.Address = func(r *http.Request) string { return r.RemoteAddr }
	}
	s := &SignIn{store: store, cfg: cfg, lookups: bulkhead.New[string](maxLookups, addressesPart), passwords: user.NewPasswords()}
	s.sessions = s.newSessions()
	if cfg.OIDC.Issuer != "" {
		s.provider = newProvider(cfg.OIDC, cfg.PublicURL+callbackPath)
	}
	return s
}

// The paths of signing in, beside [signInPath] and [user.LinkPath].
const (
	signOutPath  = frame.Root + "/sign-out"
	oidcPath     = frame.SignInPath + "/oidc"
	callbackPath = oidcPath + "/callback"
)

// Mount adds the pages, which need no sign-in.
func (s *SignIn) Mount(r chi.Router, at *frame.Site) {
	open := func(h frame.Handler) http.HandlerFunc { return s.open(at, h) }
	s.sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) { s.unreadable(at, w, r, err) }
	r.Get(frame.SignInPath, open(s.signInForm))
	r.Post(frame.SignInPath, open(s.signIn))
	r.Get(signOutPath, frame.RedirectTo(frame.HomePath))
	r.Post(signOutPath, open(s.signOut))
	r.Get(user.LinkPath+"{token}", open(s.passwordForm))
	r.Post(user.LinkPath+"{token}", open(s.setPassword))
	r.Get(oidcPath, open(s.goToProvider))
	r.Get(callbackPath, open(s.comeFromProvider))
}

// open serves a page without a sign-in.
func (s *SignIn) open(at *frame.Site, h frame.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer") // paths and queries here contain secrets
		p := at.NewPage(w, r, frame.Visitor{})
		defer p.Recover()
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if err := r.ParseForm(); err != nil {
			p.Fail(&client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The form is not readable."})
			return
		}
		if err := h(p); err != nil {
			p.Fail(s.plain(p, err))
		}
	}
}

// plain describes errors that users can act on.
func (s *SignIn) plain(p *frame.Page, err error) error {
	var full *bulkhead.FullError
	if errors.As(err, &full) || errors.Is(err, push.ErrUnavailable) {
		s.cfg.Log.WarnContext(p.Context(), "sign-in unavailable", "error", err)
		p.Writer.Header().Set("Retry-After", "1")
		return &client.Problem{Title: "Temporarily unavailable", Status: http.StatusServiceUnavailable, Detail: "The server is busy or the database does not respond. Try again in a moment."}
	}
	return err
}

// signInView is the form, which goes on to a page.
type signInView struct {
	To, Team string
	Provider bool
	Lost     bool // a form was sent after the session had ended
}

func (s *SignIn) view(p *frame.Page) signInView {
	return signInView{To: safePath(p.Request.Form.Get("to")), Team: p.Request.Form.Get("team"), Provider: s.provider != nil, Lost: p.Request.Form.Get("lost") != ""}
}

func (s *SignIn) signInForm(p *frame.Page) error {
	if _, ok := s.SignedIn(p.Request); ok {
		return p.Redirect(safePath(p.Query("to")))
	}
	return p.Show("signin", "Sign in", s.view(p))
}

// wrongCredentials does not reveal which part is wrong.
var wrongCredentials = &client.Problem{Title: "Sign-in failed", Status: http.StatusUnauthorized,
	Detail: "The e-mail address or the password is wrong, or the team has no such user"}

// signIn limits failed attempts. It charges an attempt first, so that concurrent attempts cannot evade the limit, and refunds it unless the
// password was wrong.
func (s *SignIn) signIn(p *frame.Page) error {
	email, wrong := user.CleanEmail(p.Field("email"))
	secret, err := s.store.Secret(p.Context())
	if err != nil {
		return err
	}
	try, err := s.charge(p, s.signInRules(p, secret, email))
	if err != nil {
		return p.ShowAgain(err, "signin", "Sign in", s.view(p))
	}
	err = s.enter(p, user.SaltOf(secret, email), email, wrong)
	if errors.Is(err, wrongCredentials) {
		return p.ShowAgain(err, "signin", "Sign in", s.view(p))
	}
	s.giveBack(p, try)
	if err != nil {
		return err
	}
	if p.Field("lost") != "" {
		p.Notice = "You are signed in again. What you typed before was not saved."
	}
	return p.Redirect(safePath(p.Field("to")))
}

// enter begins a session of the user with the password. If users of several tenants share the address, the user with a matching password that
// was set last signs in. An unknown name takes as long as a wrong password.
func (s *SignIn) enter(p *frame.Page, salt user.Salt, email, wrong string) error {
	password, team := p.Request.PostForm.Get("password"), p.Field("team")
	if strings.ContainsRune(team, 0) || !utf8.ValidString(team) {
		team, wrong = "", "no name of a team"
	}
	found, err := s.store.Credentials(p.Context(), email, team)
	if err != nil {
		return err
	}
	if len(password) > user.MaxPassword {
		password, wrong = "", "too long"
	}
	hashes, ids := make([]string, len(found)), make([]uuid.UUID, len(found))
	for i, c := range found {
		hashes[i], ids[i] = c.Hash, c.ID
	}
	i, err := s.match(p, salt, hashes, password)
	if err != nil {
		return err
	}
	if i >= 0 && wrong == "" {
		if err = s.begin(p.Request, found[i].User, found[i].Hash); !errors.Is(err, push.ErrNotFound) { // disabled or deleted in the meantime
			return err
		}
	}
	s.cfg.Log.InfoContext(p.Context(), "sign-in refused", "users", ids)
	return wrongCredentials
}

// patience is the longest wait for a slot to hash a password.
const patience = 5 * time.Second

func (s *SignIn) match(p *frame.Page, salt user.Salt, hashes []string, password string) (int, error) {
	ctx, cancel := context.WithTimeout(p.Context(), patience)
	defer cancel()
	return s.passwords.Match(ctx, s.cfg.Address(p.Request), salt, hashes, password)
}

func (s *SignIn) signOut(p *frame.Page) error {
	if err := s.sessions.Destroy(p.Context()); err != nil {
		return err
	}
	return p.Done("You are signed out.", frame.SignInPath)
}

// safePath returns the path of a console page to continue to. Any other path becomes the start page.
func safePath(to string) string {
	u, err := url.Parse(to)
	inside := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(to, frame.Root+"/") && strings.HasPrefix(path.Clean(u.Path), frame.Root+"/")
	if !inside || strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(u.Path, frame.SignInPath) || strings.HasPrefix(u.Path, user.LinkPath) {
		return frame.HomePath
	}
	return to
}
