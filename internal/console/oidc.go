package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// OIDC is an OpenID Connect provider. Without an Issuer there is none.
type OIDC struct {
	Issuer, ClientID string
	ClientSecret     string               // "": the console is a public client
	GroupsClaim      string               // of the id token; "": groups
	Roles            map[string]user.Role // by group; of several, the mightiest counts
	Tenant           string               // the name of the tenant whose users these are
	TrustEmail       bool                 // an address without email_verified counts as verified
	HTTP             *http.Client         // nil: one that waits for 10 s
}

// provider is an OpenID Connect provider. Its metadata is read at sign-ins until the first success.
type provider struct {
	cfg      OIDC
	redirect string

	asking singleflight.Group // whoever wants to sign in meanwhile waits for the same answer
	known  atomic.Pointer[oidc.Provider]
}

func newProvider(cfg OIDC, redirect string) *provider {
	cfg.GroupsClaim = cmp.Or(cfg.GroupsClaim, "groups")
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{Timeout: 10 * time.Second}
	}
	return &provider{cfg: cfg, redirect: redirect}
}

// context returns a context that makes the libraries use the provider's HTTP client.
func (v *provider) context(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, v.cfg.HTTP)
}

// client is the console as the provider knows it.
func (v *provider) client(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	known := v.known.Load()
	if known == nil {
		asked := v.asking.DoChan("", func() (any, error) {
			found, err := oidc.NewProvider(v.context(context.Background()), v.cfg.Issuer) // which keeps the context, for its keys
			if err == nil {
				v.known.Store(found)
			}
			return found, err
		})
		select {
		case answer := <-asked:
			if answer.Err != nil {
				return nil, nil, fmt.Errorf("ask the OIDC provider: %w", answer.Err)
			}
			known = answer.Val.(*oidc.Provider)
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("ask the OIDC provider: %w", ctx.Err())
		}
	}
	return &oauth2.Config{
		ClientID: v.cfg.ClientID, ClientSecret: v.cfg.ClientSecret, Endpoint: known.Endpoint(), RedirectURL: v.redirect,
		Scopes: []string{oidc.ScopeOpenID, "profile", "email"},
	}, known, nil
}

// away is the state in a cookie while the browser is at the provider. The browser must bring it back, so that no other browser can finish
// the sign-in.
type away struct {
	State, Nonce, Verifier, To string
}

// awayTime is the longest time that a browser can spend at the provider.
const awayTime = 10 * time.Minute

const awayCookie = "sendquota-oidc"

// keep sets the cookie for a number of seconds. A negative number deletes it.
func (s *SignIn) keep(p *frame.Page, a away, seconds int) {
	text, _ := json.Marshal(a)
	http.SetCookie(p.Writer, s.Cookie(awayCookie, base64.RawURLEncoding.EncodeToString(text), seconds, http.SameSiteLaxMode))
}

func unguessable() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

var (
	noProvider   = &client.Problem{Title: "There is no such page", Status: http.StatusNotFound, Detail: "Users sign in with passwords here"}
	providerAway = &client.Problem{Title: "Your company's sign-in does not respond", Status: http.StatusBadGateway, Detail: "Try again in a moment. If the error persists, contact the operator of sendquota"}
)

// goToProvider sends a browser to the provider, with what it has to bring back.
func (s *SignIn) goToProvider(p *frame.Page) error {
	if s.provider == nil {
		return noProvider
	}
	config, _, err := s.provider.client(p.Context())
	if err != nil {
		s.cfg.Log.ErrorContext(p.Context(), "OIDC provider does not respond", "error", err)
		return providerAway
	}
	a := away{unguessable(), unguessable(), oauth2.GenerateVerifier(), safePath(p.Query("to"))}
	s.keep(p, a, int(awayTime/time.Second))
	return p.Redirect(config.AuthCodeURL(a.State, oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)))
}

// refusedAtProvider returns the problem for an invalid callback. The log has the reason.
func refusedAtProvider(detail string) error {
	return &client.Problem{Title: "You are not signed in", Status: http.StatusForbidden, Detail: detail}
}

// comeFromProvider signs in the user that the provider names.
func (s *SignIn) comeFromProvider(p *frame.Page) error {
	if s.provider == nil {
		return noProvider
	}
	var a away
	if cookie, err := p.Request.Cookie(s.cookieName(awayCookie)); err == nil {
		text, _ := base64.RawURLEncoding.DecodeString(cookie.Value)
		_ = json.Unmarshal(text, &a) // what cannot be read has no state
	}
	s.keep(p, away{}, -1) // it is used once
	if a.State == "" || subtle.ConstantTimeCompare([]byte(a.State), []byte(p.Query("state"))) != 1 {
		return refusedAtProvider("This sign-in did not start in this browser, or it took too long. Start again")
	}
	if reason := p.Query("error"); reason != "" {
		s.cfg.Log.InfoContext(p.Context(), "OIDC provider refused a sign-in", "reason", user.TrimName(reason))
		return refusedAtProvider("Your company's sign-in refused it. Start again, or ask its admin")
	}
	try, err := s.chargeAddress(p, "callbacks of address", callbackLimit) // any browser can invent a state and cause a call to the provider
	if err != nil {
		return err
	}
	external, err := s.provider.whoIs(p.Context(), p.Query("code"), a)
	if err != nil {
		return s.notExternal(p, err)
	}
	external.Tenant, err = s.store.Tenant(p.Context(), s.cfg.OIDC.Tenant)
	if errors.Is(err, push.ErrNotFound) {
		err = fmt.Errorf("console.oidc.tenant: no tenant has this name")
	}
	if err != nil {
		return err
	}
	external.Most = s.cfg.MaxUsers
	u, err := s.store.ExternalUser(p.Context(), external)
	if err == nil {
		err = s.begin(p.Request, u, "")
	}
	if err != nil {
		return s.notExternal(p, err)
	}
	s.giveBack(p, try)
	return p.Redirect(safePath(a.To))
}

// unfitError explains to the user why the claims of the provider are not enough.
type unfitError string

func (e unfitError) Error() string { return string(e) }

// notExternal turns errors of who comes from the provider into words.
func (s *SignIn) notExternal(p *frame.Page, err error) error {
	var unfit unfitError
	detail := "The answer of your company's sign-in is not valid. Start again"
	switch {
	case errors.As(err, &unfit):
		detail = unfit.Error()
	case errors.Is(err, user.ErrDisabled), errors.Is(err, push.ErrNotFound):
		detail = "You cannot sign in here. Ask an admin of your team"
	case errors.Is(err, user.ErrEmailTaken):
		detail = "Another user of your team has your e-mail address. Ask an admin of your team"
	case errors.Is(err, user.ErrUnverified):
		detail = "Your company's sign-in has not verified your e-mail address. Ask its admin"
	case errors.Is(err, user.ErrTooMany):
		detail = "Your team has the maximum number of users. Ask an admin of your team to delete one"
	case errors.Is(err, push.ErrUnavailable):
		return err
	}
	s.cfg.Log.WarnContext(p.Context(), "sign-in through the OIDC provider refused", "error", err)
	return refusedAtProvider(detail)
}
