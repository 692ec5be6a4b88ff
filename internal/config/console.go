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

// Console has the settings of the pages for people.
type Console struct {
	Enabled           bool
	Addr              string        // its own address, host:port; empty: the address of the API
	PublicURL         string        // the URL for browsers, without a path; empty: see [Config.ConsoleURL]
	SessionLifetime   time.Duration // a session ends this long after it began
	SessionIdle       time.Duration // a session ends this long after its last request
	MaxUsersPerTenant int
	ExternalPasswords bool // users of the OIDC provider may also have links and passwords
	OIDC              OIDC
}

// OIDC has the settings of an OpenID Connect provider for sign-ins. An empty Issuer is no provider.
type OIDC struct {
	Issuer, ClientID string
	ClientSecret     Secret // empty: a public client, or in the file
	ClientSecretFile string
	GroupsClaim      string
	Roles            map[string]string // by group; a member of several groups gets the strongest role
	Tenant           string            // the name of the tenant of these users
	TrustEmail       bool              // an address without email_verified counts as verified
}

func (c *Console) settings(t *strictyaml.Table) {
	t.Bool("enabled", "false", "whether the API serves the console, the pages for people, at /console; `sendquota dev` always does so", &c.Enabled)
	t.String("addr", optional, "the console's own address, host:port; without it, the address of the API", &c.Addr, checkAddress)
	t.String("public_url", optional, "the URL of the console for browsers, https://host or http://host, without a path: for links, the calls that pages show, the cookie and the OIDC provider; without it, http:// and its address", &c.PublicURL, checkOrigin)
	t.Duration("session_lifetime", "12h", "a user has to sign in again this long after signing in, 1 minute to 1 year", &c.SessionLifetime, time.Minute, 8760*time.Hour)
	t.Duration("session_idle", "2h", "a user has to sign in again this long after opening the last page, 1 minute to 1 year, at most session_lifetime", &c.SessionIdle, time.Minute, 8760*time.Hour)
	t.Int("max_users_per_tenant", "100", "maximum number of users of a tenant; beyond it REST and sign-ins at the OIDC provider create none, 1 to 10000", &c.MaxUsersPerTenant, 1, 10_000)
	t.Bool("external_passwords", "false", "whether users of the OIDC provider may also have links and sign in with a password", &c.ExternalPasswords)
	t.Section("oidc", "{}", "an OpenID Connect provider for sign-ins; without it, all users have passwords", c.OIDC.settings)
	t.Check(func(p strictyaml.Node) {
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
	t.String("client_id", optional, "the id of the console at the provider", &o.ClientID, checkNotEmpty)
	t.Secret("client_secret", optional, "the secret of that id; may use ${ENV_NAME}; without it, the console is a public client", &o.ClientSecret, checkNotEmpty)
	t.String("client_secret_file", optional, "instead of client_secret, the path of a file that holds it", &o.ClientSecretFile, checkPath)
	t.String("groups_claim", "groups", "the claim of the id token that lists the groups of a user", &o.GroupsClaim, checkNotEmpty)
	t.Words("roles", optional, "the role of each group: viewer, editor, sender or admin; a member of several groups gets the strongest role; members of no group may not sign in", &o.Roles, "viewer", "editor", "sender", "admin")
	t.String("tenant", optional, "the name of the tenant of these users", &o.Tenant, checkNotEmpty)
	t.Bool("trust_email", "false", "whether an address counts as verified if the id token has no email_verified, as from Entra ID; only if users cannot choose their address", &o.TrustEmail)
	for _, also := range []string{"client_id", "roles", "tenant"} {
		t.Needs("issuer", also)
	}
	for _, name := range []string{"client_id", "client_secret", "client_secret_file", "groups_claim", "roles", "tenant", "trust_email"} {
		t.Needs(name, "issuer")
	}
	t.Check(func(p strictyaml.Node) {
		if file := p.Child("client_secret_file"); file.Given() && p.Child("client_secret").Given() {
			file.BadKey("is not allowed beside client_secret")
		}
		if roles := p.Child("roles"); roles.Given() && o.Roles != nil && len(o.Roles) == 0 {
			roles.BadKey("must have at least one group; otherwise no user can sign in")
		}
	})
}

// Warnings describes settings that are allowed, but probably unintended.
func (c *Config) Warnings() (all []string) {
	if strings.HasPrefix(c.Console.PublicURL, "https://") && len(c.APILimits.TrustedProxies) == 0 {
		all = append(all, "console.public_url is https, and api_limits.trusted_proxies is empty: all people behind the proxy share its address, "+
			"and so ten failed sign-ins a minute; list the addresses of the proxy")
	}
	return all
}

// ConsoleURL returns the URL of the console for browsers, without a path.
func (c *Config) ConsoleURL() string {
	if c.Console.PublicURL != "" {
		return c.Console.PublicURL
	}
	if c.Console.Addr != "" {
		return urlOf(c.Console.Addr)
	}
	return c.APIURL()
}

// APIURL returns the URL of the API for programs on this machine.
func (c *Config) APIURL() string { return urlOf(c.Addr) }

// ShownAPIURL returns the URL of the API that the console shows in calls; "" is the URL of its pages. The program cannot see a proxy
// that ends TLS, and a call that is copied from a page must not send a key without encryption.
func (c *Config) ShownAPIURL() string {
	if c.Console.Addr != "" {
		return c.APIURL() // the API has another address than the page
	}
	return c.Console.PublicURL
}

// urlOf returns the URL of a listen address, or "" for an invalid address.
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

// checkOrigin accepts a URL of a host, without a path.
func checkOrigin(s string) string {
	wrong := checkProviderURL(s)
	if u, _ := url.Parse(s); wrong == "" && strings.Trim(u.Path, "/") != "" {
		return "must have no path"
	}
	return wrong
}

// checkIssuer accepts a URL that no other host can answer: https, or this machine.
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
