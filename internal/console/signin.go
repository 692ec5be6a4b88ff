package console

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/user"
)

// signInStore knows who may sign in. Who may not is [push.ErrNotFound].
type signInStore interface {
	sessionStore
	Credential(ctx context.Context, email, tenantName string) (u user.User, phc string, err error)
	UserByLink(ctx context.Context, link [32]byte) (user.User, error)
	SetPassword(ctx context.Context, link [32]byte, phc string) (user.User, error)
	ExternalUser(ctx context.Context, e user.External) (user.User, error)
	Tenant(ctx context.Context, name string) (uuid.UUID, error)
}

// limiter decides about speed limits.
type limiter interface {
	Take(ctx context.Context, owner string, cost int, rules ...ratelimit.Rule) (ratelimit.Decision, error)
}

// SignInConfig is what signing in may be told. The zero value is useful.
type SignInConfig struct {
	Log       *slog.Logger     // nil: silent
	Now       func() time.Time // nil: time.Now
	PublicURL string           // where browsers find the console, without a path; https binds cookies to the host
	Lifetime  time.Duration    // of a session; 0: 12 h
	Idle      time.Duration    // of one in which nothing is done; 0: 2 h

	Limiter  limiter                    // of sign-ins; nil: there are no limits
	Address  func(*http.Request) string // of the browser; nil: of the connection
	OIDC     OIDC
	MaxUsers int // that a tenant may have, for users of the provider; 0: any number
}

// passwords hashes passwords, and compares them with hashes.
type passwords interface {
	Hash(ctx context.Context, address, password string) (phc string, err error)
	Matches(ctx context.Context, address, phc, password string) (bool, error)
}

// SignIn has users sign in and out, and knows who has. It is what [New] wants to know.
type SignIn struct {
	store     signInStore
	cfg       SignInConfig
	sessions  *scs.SessionManager
	lookups   *bulkhead.Bulkhead[string] // of sessions, by the browser's address
	passwords passwords
	provider  *provider // nil: there is none
}

// NewSignIn returns the sign-in of the users that a store has.
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
	signOutPath  = root + "/sign-out"
	oidcPath     = signInPath + "/oidc"
	callbackPath = oidcPath + "/callback"
)

// mount adds the pages, which are open to everybody.
func (s *SignIn) mount(r chi.Router, c *console) {
	open := func(h handler) http.HandlerFunc { return s.open(c, h) }
	s.sessions.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) { s.unreadable(c, w, r, err) }
	r.Get(signInPath, open(s.signInForm))
	r.Post(signInPath, open(s.signIn))
	r.Get(signOutPath, redirectTo(homePath))
	r.Post(signOutPath, open(s.signOut))
	r.Get(user.LinkPath+"{token}", open(s.passwordForm))
	r.Post(user.LinkPath+"{token}", open(s.setPassword))
	r.Get(oidcPath, open(s.goToProvider))
	r.Get(callbackPath, open(s.comeFromProvider))
}

// open serves a page to people who may not have signed in.
func (s *SignIn) open(c *console, h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Referrer-Policy", "no-referrer") // paths and queries here have secrets
		p := c.newPage(w, r, Visitor{})
		defer p.recover()
		r.Body = http.MaxBytesReader(w, r.Body, 16<<10)
		if err := r.ParseForm(); err != nil {
			p.fail(&client.Problem{Title: "Bad Request", Status: http.StatusBadRequest, Detail: "The form cannot be read."})
			return
		}
		if err := h(p); err != nil {
			p.fail(s.plain(p, err))
		}
	}
}

// plain turns errors that people can do something about into words.
func (s *SignIn) plain(p *page, err error) error {
	var full *bulkhead.FullError
	if errors.As(err, &full) || errors.Is(err, push.ErrUnavailable) {
		s.cfg.Log.WarnContext(p.ctx(), "nobody can sign in right now", "error", err)
		p.w.Header().Set("Retry-After", "1")
		return &client.Problem{Title: "Not now", Status: http.StatusServiceUnavailable, Detail: "Too much is going on, or the database does not answer. Try again in a moment."}
	}
	return err
}

// signInView is the form, which goes on to a page.
type signInView struct {
	To, Team string
	Provider bool
	Lost     bool // a form was sent when the session had ended
}

func (s *SignIn) view(p *page) signInView {
	return signInView{To: safePath(p.r.Form.Get("to")), Team: p.r.Form.Get("team"), Provider: s.provider != nil, Lost: p.r.Form.Get("lost") != ""}
}

func (s *SignIn) signInForm(p *page) error {
	if _, ok := s.visitor(p.r); ok {
		return p.redirect(safePath(p.query("to")))
	}
	return p.show("signin", "Sign in", s.view(p))
}

// wrongCredentials does not tell a name that nobody has from a wrong password.
var wrongCredentials = &client.Problem{Title: "You are not signed in", Status: http.StatusUnauthorized,
	Detail: "The e-mail address or the password is wrong, or the address belongs to users of several teams: name the team then"}

// signIn takes as long for a name that nobody has as for a wrong password.
func (s *SignIn) signIn(p *page) error {
	password := p.r.PostForm.Get("password")
	email, wrong := user.CleanEmail(p.form("email"))
	if tooMany := s.tooMany(p, email); tooMany != nil {
		return p.again(tooMany, "signin", "Sign in", s.view(p))
	}
	team := p.form("team")
	if strings.ContainsRune(team, 0) || !utf8.ValidString(team) {
		team, wrong = "", "no name of a team"
	}
	u, phc, err := s.store.Credential(p.ctx(), email, team)
	if err != nil && !errors.Is(err, push.ErrNotFound) {
		return err
	}
	if len(password) > user.MaxPassword {
		password, wrong = "", "too long"
	}
	ok, err := s.matches(p, phc, password)
	if err != nil {
		return err
	}
	if !ok || wrong != "" {
		s.cfg.Log.InfoContext(p.ctx(), "a sign-in was refused", "user", u.ID)
		return p.again(wrongCredentials, "signin", "Sign in", s.view(p))
	}
	if err := s.begin(p.r, u, phc); err != nil {
		return orWrong(err)
	}
	if p.form("lost") != "" {
		p.Notice = "You are signed in again. What you typed before was not saved."
	}
	return p.redirect(safePath(p.form("to")))
}

// orWrong is for a user who was disabled or deleted meanwhile.
func orWrong(err error) error {
	if errors.Is(err, push.ErrNotFound) {
		return wrongCredentials
	}
	return err
}

// patience is how long somebody waits for a turn to have a password hashed.
const patience = 5 * time.Second

func (s *SignIn) matches(p *page, phc, password string) (bool, error) {
	ctx, cancel := context.WithTimeout(p.ctx(), patience)
	defer cancel()
	return s.passwords.Matches(ctx, s.cfg.Address(p.r), phc, password)
}

// The speed limits of sign-ins, from one address and of one name.
var (
	addressLimit = ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 10, Per: time.Minute}
	nameLimits   = []ratelimit.Limit{{Algorithm: ratelimit.SlidingWindow, Limit: 5, Per: time.Minute}, {Algorithm: ratelimit.SlidingWindow, Limit: 30, Per: time.Hour}}
)

// signInOwner is the owner of these limits.
const signInOwner = "sign-in"

// tooMany counts a sign-in, and says if there were too many before it; nil: there were not, or Redis does not answer, which
// keeps nobody out. An empty name is not counted by itself.
func (s *SignIn) tooMany(p *page, name string) error {
	if s.cfg.Limiter == nil {
		return nil
	}
	rules := []ratelimit.Rule{{Subject: "address " + s.cfg.Address(p.r), Limit: addressLimit, Tag: signInOwner}}
	if name != "" {
		hash := sha256.Sum256([]byte(name)) // Redis has no personal data
		for _, limit := range nameLimits {
			rules = append(rules, ratelimit.Rule{Subject: "name " + hex.EncodeToString(hash[:]), Limit: limit, Tag: signInOwner})
		}
	}
	d, err := s.cfg.Limiter.Take(p.ctx(), signInOwner, 1, rules...)
	if err != nil {
		s.cfg.Log.WarnContext(p.ctx(), "a sign-in is not limited", "error", err)
		return nil
	}
	if d.Allowed {
		return nil
	}
	var wait time.Duration
	for _, r := range d.Results {
		wait = max(wait, r.RetryAfter)
	}
	seconds := int((wait + time.Second - 1) / time.Second)
	p.w.Header().Set("Retry-After", strconv.Itoa(max(1, seconds)))
	return &client.Problem{Title: "Too many tries", Status: http.StatusTooManyRequests, Detail: "Try again in " + span(time.Duration(max(1, seconds))*time.Second)}
}

func (s *SignIn) signOut(p *page) error {
	if err := s.sessions.Destroy(p.ctx()); err != nil {
		return err
	}
	return p.done("You are signed out.", signInPath)
}

// safePath is a page of the console to which a form or a link wants to go on; any other is the first one.
func safePath(to string) string {
	u, err := url.Parse(to)
	inside := err == nil && u.Scheme == "" && u.Host == "" && u.User == nil && strings.HasPrefix(to, root+"/") && strings.HasPrefix(path.Clean(u.Path), root+"/")
	if !inside || strings.ContainsAny(to, "\\\r\n\t") || strings.HasPrefix(u.Path, signInPath) || strings.HasPrefix(u.Path, user.LinkPath) {
		return homePath
	}
	return to
}
