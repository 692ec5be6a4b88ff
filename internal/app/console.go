package app

import (
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/console"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/user"
)

// handlers returns the handler of the API's address, and the handler of the console's own address, or nil if it has none. Without
// its own address, the console is below /console.
func (a *App) handlers() (api, pages http.Handler) {
	api = a.handler()
	c := a.cfg.Console
	if !c.Enabled {
		return api, nil
	}
	pages = console.New(api, console.NewSignIn(a.store, console.SignInConfig{
		Log: a.log, PublicURL: a.cfg.ConsoleURL(), Lifetime: c.SessionLifetime, Idle: c.SessionIdle,
		Limiter: a.callerLimits.Limiter, Address: a.callerLimits.ClientAddress, OIDC: a.oidc, MaxUsers: c.MaxUsersPerTenant,
	}), frame.Config{Log: a.log, Stopping: a.stopping.Load, Computing: a.computing, APIAddress: a.cfg.ShownAPIURL(), FormMemory: requestMemory() / 10})
	if c.Addr != "" {
		return api, toConsole(pages)
	}
	return beside(pages, api), nil
}

// isConsole reports whether a path belongs to the console.
func isConsole(path string) bool { return path == "/console" || strings.HasPrefix(path, "/console/") }

// beside routes the console's paths to pages, and all others to the API. It does not clean paths like a mux: the API answers those.
func beside(pages, api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isConsole(r.URL.Path) {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

// toConsole serves the console, and redirects / to it.
func toConsole(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/console/", http.StatusSeeOther)
			return
		}
		pages.ServeHTTP(w, r)
	})
}

// openOIDC returns the console's configuration of the OIDC provider, and reads the file of the secret.
func openOIDC(o config.OIDC) (console.OIDC, error) {
	secret := string(o.ClientSecret)
	if o.ClientSecretFile != "" {
		text, err := os.ReadFile(o.ClientSecretFile)
		if err != nil {
			return console.OIDC{}, fmt.Errorf("console.oidc.client_secret_file: %w", err)
		}
		secret = strings.TrimSpace(string(text))
	}
	roles := map[string]user.Role{}
	for group, role := range o.Roles {
		roles[group] = user.Role(role)
	}
	return console.OIDC{Issuer: o.Issuer, ClientID: o.ClientID, ClientSecret: secret, GroupsClaim: o.GroupsClaim, Roles: roles, Tenant: o.Tenant, TrustEmail: o.TrustEmail}, nil
}
