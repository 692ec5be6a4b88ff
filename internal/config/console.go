package config

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/strictyaml"
)

// Console is how people use the service with a browser.
type Console struct {
	Enabled           bool
	Addr              string        // where it listens alone, host:port; empty: where the API does
	PublicURL         string        // where browsers find it, without a path; empty: see [Config.ConsoleURL]
	SessionLifetime   time.Duration // after which one has to sign in again
	SessionIdle       time.Duration // after which one has to, if nothing was done meanwhile
	MaxUsersPerTenant int
	ExternalPasswords bool // users of the OIDC provider may have links and passwords too
	OIDC              OIDC
}

// OIDC is an OpenID Connect provider at which users sign in. Without an Issuer there is none.
type OIDC struct {
	Issuer, ClientID string
	ClientSecret     Secret // empty: a public client, or in the file
	ClientSecretFile string
	GroupsClaim      string
	Roles            map[string]string // by group; of several, the mightiest counts
	Tenant           string            // the name of the tenant whose users these are
	TrustEmail       bool              // an address without email_verified counts as verified
}

func (c *Console) settings(t *strictyaml.Table) {
	t.Bool("enabled", "false", "whether the API serves the console, the pages for people, at /console; `sendquota dev` always does so", &c.Enabled)
	t.String("addr", optional, "where the console listens alone, host:port; without it, where the API does", &c.Addr, checkAddress)
	t.String("public_url", optional, "where browsers find the console, https://host or http://host, without a path: for links, for the calls that pages show, for the cookie and for the OIDC provider; without it, http:// and the address where it listens", &c.PublicURL, checkOrigin)
	t.Duration("session_lifetime", "12h", "after how long a user has to sign in again, 1 minute to 1 year", &c.SessionLifetime, time.Minute, 8760*time.Hour)
	t.Duration("session_idle", "2h", "after how long without a page being opened, 1 minute to 1 year, at most session_lifetime", &c.SessionIdle, time.Minute, 8760*time.Hour)
	t.Int("max_users_per_tenant", "100", "users with which a tenant cannot make another one over REST or by signing in at the OIDC provider, 1 to 10000", &c.MaxUsersPerTenant, 1, 10_000)
	t.Bool("external_passwords", "false", "whether users of the OIDC provider may have links and sign in with a password too", &c.ExternalPasswords)
	t.Section("oidc", "{}", "an OpenID Connect provider at which users sign in; without it, all have passwords", c.OIDC.settings)
	t.Check(func(p strictyaml.Place) {
		c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
		if idle := p.Child("session_idle"); c.SessionLifetime > 0 && c.SessionIdle > c.SessionLifetime {
			if idle.Given() {
				idle.BadValue("must be at most session_lifetime, which is %s", duration.Words(c.SessionLifetime))
			} else {
				c.SessionIdle = c.SessionLifetime
			}
		}
		if address := p.Child("public_url"); p.Child("oidc").Child("issuer").Given() && !address.Given() {
			address.BadKey("is required beside oidc: the provider sends browsers back to it")
		}
	})
}

func (o *OIDC) settings(t *strictyaml.Table) {
	t.String("issuer", optional, "the URL of the provider, as its tokens name it; https, unless it is on this machine", &o.Issuer, checkIssuer)
	t.String("client_id", optional, "the id that the provider has given the console", &o.ClientID, checkNotEmpty)
	t.Secret("client_secret", optional, "the secret of that id; may use ${ENV_NAME}; without it, the console is a public client", &o.ClientSecret, checkNotEmpty)
	t.String("client_secret_file", optional, "instead of client_secret, the path of a file that holds it", &o.ClientSecretFile, checkPath)
	t.String("groups_claim", "groups", "the claim of the id token that lists the groups of a user", &o.GroupsClaim, checkNotEmpty)
	t.Words("roles", optional, "which role the members of a group have: viewer, editor, sender or admin; of several, the mightiest; members of none may not sign in", &o.Roles, "viewer", "editor", "sender", "admin")
	t.String("tenant", optional, "the name of the tenant whose users these are", &o.Tenant, checkNotEmpty)
	t.Bool("trust_email", "false", "whether an address counts as verified if the id token has no email_verified, as of Entra ID; only where users cannot choose their address", &o.TrustEmail)
	for _, also := range []string{"client_id", "roles", "tenant"} {
		t.Needs("issuer", also)
	}
	for _, name := range []string{"client_id", "client_secret", "client_secret_file", "groups_claim", "roles", "tenant", "trust_email"} {
		t.Needs(name, "issuer")
	}
	t.Check(func(p strictyaml.Place) {
		if file := p.Child("client_secret_file"); file.Given() && p.Child("client_secret").Given() {
			file.BadKey("is not allowed beside client_secret")
		}
		if roles := p.Child("roles"); roles.Given() && o.Roles != nil && len(o.Roles) == 0 {
			roles.BadKey("must have at least one group, or nobody could sign in")
		}
	})
}

// Warnings returns what is allowed in the settings, and is probably not meant.
func (c *Config) Warnings() (all []string) {
	if strings.HasPrefix(c.Console.PublicURL, "https://") && len(c.APILimits.TrustedProxies) == 0 {
		all = append(all, "console.public_url is https, and api_limits.trusted_proxies is empty: all people who come through the proxy share its address, "+
			"and so ten failed sign-ins a minute; list the addresses of the proxy")
	}
	return all
}

// ConsoleURL is where browsers find the console, without a path.
func (c *Config) ConsoleURL() string {
	if c.Console.PublicURL != "" {
		return c.Console.PublicURL
	}
	if c.Console.Addr != "" {
		return urlOf(c.Console.Addr)
	}
	return c.APIURL()
}

// APIURL is where programs on this machine find the API.
func (c *Config) APIURL() string { return urlOf(c.Addr) }

// ShownAPIURL is where the console says that programs find the API; "": where its pages are. A proxy that ends TLS in front of both
// does not tell that it does: a call that is copied from a page must not send a key without encryption.
func (c *Config) ShownAPIURL() string {
	if c.Console.Addr != "" {
		return c.APIURL() // where the browser found the page, the API is not
	}
	return c.Console.PublicURL
}

// urlOf is the URL of an address to listen on; "" if it is none.
func urlOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// checkOrigin takes a URL of a host, without a path.
func checkOrigin(s string) string {
	wrong := checkProviderURL(s)
	if u, _ := url.Parse(s); wrong == "" && strings.Trim(u.Path, "/") != "" {
		return "must have no path"
	}
	return wrong
}

// checkIssuer takes a URL over which nobody else can answer.
func checkIssuer(s string) string {
	wrong := checkProviderURL(s)
	if wrong != "" {
		return wrong
	}
	u, _ := url.Parse(s)
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	return unless(u.Scheme == "https" || local, "must begin with https://, unless its host is this machine")
}
