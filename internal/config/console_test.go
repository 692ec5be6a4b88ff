package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestConsole_EveryFaultAtOnce of the section, with the lines.
func TestConsole_EveryFaultAtOnce(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		text string
		want []string
	}{
		"scalars": {`console:
  enabled: yes please
  addr: here
  public_url: https://host/path
  session_lifetime: 1h
  session_idle: 2h
  max_users_per_tenant: 0
  password: x
`, []string{
			`2: console.enabled: "yes please": must be true or false`,
			`3: console.addr: "here": must be host:port, such as 127.0.0.1:8080 or :8080`,
			`4: console.public_url: "https://host/path": must have no path`,
			`6: console.session_idle: "2h": must be at most session_lifetime, which is 1 hour`,
			`7: console.max_users_per_tenant: 0: must be a whole number from 1 to 10000`,
			`8: console.password: is not a setting; allowed: enabled, addr, public_url, session_lifetime, session_idle, max_users_per_tenant, external_passwords, oidc`,
		}},
		"provider": {`console:
  oidc:
    issuer: http://id.example.com
    client_secret: a
    client_secret_file: b
    roles: {staff: king, more: [admin]}
`, []string{
			`1: console.public_url: is required beside oidc: the provider sends browsers back to it`,
			`2: console.oidc.client_id: is required beside issuer`,
			`2: console.oidc.tenant: is required beside issuer`,
			`3: console.oidc.issuer: "http://id.example.com": must begin with https://, unless its host is this machine`,
			`5: console.oidc.client_secret_file: is not allowed beside client_secret`,
			`6: console.oidc.roles.staff: "king": must be one of viewer, editor, sender, admin`,
			`6: console.oidc.roles.more: a list: must be one of viewer, editor, sender, admin`,
		}},
		"nobody": {`console: {public_url: "http://h", oidc: {client_id: x, roles: {}, tenant: " "}}
`, []string{
			`1: console.oidc.tenant: " ": must not be empty`,
			`1: console.oidc.issuer: is required beside client_id`,
			`1: console.oidc.issuer: is required beside roles`,
			`1: console.oidc.issuer: is required beside tenant`,
			`1: console.oidc.roles: must have at least one group; otherwise no user can sign in`,
		}},
	} {
		_, errs := read(row.text)
		var got []string
		for _, e := range errs {
			got = append(got, e.Error())
		}
		for i, w := range row.want {
			row.want[i] = "sendquota.yaml:" + w
		}
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestConsole_IdleFitsLifetime: the default of one gives way to what was chosen of the other.
func TestConsole_IdleFitsLifetime(t *testing.T) {
	t.Parallel()
	c, errs := read("console: {session_lifetime: 1h}")
	if errs != nil || c.Console.SessionIdle != time.Hour {
		t.Errorf("%v, %v", c.Console.SessionIdle, errs)
	}
}

func TestConfig_ConsoleURL(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"http://127.0.0.1:8080": {Addr: "127.0.0.1:8080"},
		"http://localhost:80":   {Addr: ":80"},
		"http://localhost:81":   {Addr: "[::]:81"},
		"http://localhost:82":   {Addr: "0.0.0.0:82"},
		"http://[::1]:83":       {Addr: ":80", Console: Console{Addr: "[::1]:83"}},
		"https://c.example.com": {Addr: ":80", Console: Console{Addr: ":81", PublicURL: "https://c.example.com"}},
		"":                      {},
	} {
		if got := c.ConsoleURL(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestConfig_ShownAPIURL(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"":                      {Addr: ":80"},
		"http://localhost:80":   {Addr: ":80", Console: Console{Addr: ":81", PublicURL: "https://c.example.com"}},
		"https://c.example.com": {Addr: ":80", Console: Console{PublicURL: "https://c.example.com"}},
	} {
		if got := c.ShownAPIURL(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestConfig_Warnings: behind a proxy that is not trusted, all people share one address, and so the limits of sign-ins.
func TestConfig_Warnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"{}": 0, `console: {public_url: "http://console.example.com"}`: 0, `console: {public_url: "https://console.example.com"}`: 1,
		`{console: {public_url: "https://console.example.com"}, api_limits: {trusted_proxies: [10.0.0.0/8]}}`: 0,
	} {
		c, errs := read(text)
		if got := c.Warnings(); len(got) != want || errs != nil || want > 0 && !strings.Contains(got[0], "api_limits.trusted_proxies") {
			t.Errorf("%s: %v, %v", text, got, errs)
		}
	}
}
