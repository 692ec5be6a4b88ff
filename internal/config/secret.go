package config

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Secret is a string that is never printed, logged or encoded. A URL is one
// too where it may hold a password. Convert it to string to use it.
//
// Only fmt of a struct that holds a Secret in an unexported field gets around
// this: fmt calls no methods there.
type Secret string

const redacted = "[redacted]"

// String shows whether there is a secret, and nothing else.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format is String for every verb of fmt, %#v and %d among them.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText is String for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// hidden reads a string that must not be shown. The check says what is wrong
// with it without quoting it, or "".
func hidden(to *Secret, check func(string) string) reader {
	return reader{into: func(p place) {
		p.hidden = true
		if s, ok := p.text(); ok {
			keep(to, s, p, check)
		}
	}}
}

// expanded is hidden for the file, where ${ENV_NAME} stands for a variable.
func expanded(to *Secret, check func(string) string) reader {
	return reader{into: func(p place) {
		p.hidden = true
		raw, ok := p.text()
		if !ok {
			return
		}
		if s, ok := p.expand(raw); ok {
			keep(to, s, p, check)
		}
	}}
}

func keep(to *Secret, s string, p place, check func(string) string) {
	if wrong := check(s); wrong != "" {
		p.fault("%s", wrong)
		return
	}
	*to = Secret(s)
}

// A reference is ${…}; other dollar signs mean nothing.
var (
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand puts the values of variables in place of their references. A value is
// not looked at again: a reference within it stays as it is.
func (p place) expand(raw string) (expanded string, ok bool) {
	ok = true
	expanded = reference.ReplaceAllStringFunc(raw, func(ref string) string {
		name := ref[len("${") : len(ref)-len("}")]
		if !variableName.MatchString(name) {
			p.refuse("has a ${…} that does not name an environment variable")
			ok = false
			return ""
		}
		value := p.in.env.values[name]
		if value == "" {
			p.refuse("the environment variable %s is not set or empty", name)
			ok = false
		}
		return value
	})
	return expanded, ok
}

func checkURL(s string) string {
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an absolute URL with http:// or https:// and a host"
	}
	return ""
}

func checkWebhookURL(s string) string {
	wrong := checkURL(s)
	u, err := url.Parse(s)
	switch {
	case wrong != "" || err != nil:
		return wrong
	case u.User != nil:
		return "must have no user and password; use secret to prove who calls"
	}
	return ""
}

func checkNotEmpty(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must not be empty"
	}
	return ""
}

// checkSigningSecret takes what Standard Webhooks can sign with.
func checkSigningSecret(s string) string {
	encoded, prefixed := strings.CutPrefix(s, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case strings.TrimSpace(s) != s:
		return "must not begin or end with white space"
	case prefixed && (err != nil || len(key) == 0):
		return "must have base64 after whsec_ (without whsec_ it is used as it is)"
	case !prefixed && len(s) < 16:
		return "must be whsec_ and base64, or any other string of at least 16 bytes, which is used as it is"
	}
	return ""
}
