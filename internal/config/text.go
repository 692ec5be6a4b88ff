package config

import (
	"encoding/base64"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// The functions below check texts. They return what is wrong, without quoting the text, or "".

// nameShape is the shape of the names of rules and channels.
var nameShape = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

const nameForm = "1 to 64 of a-z, 0-9, - and _"

// shaped checks for a shape.
func shaped(shape *regexp.Regexp, form string) func(string) string {
	return func(s string) string {
		if !shape.MatchString(s) {
			return "must be " + form
		}
		return ""
	}
}

func checkNotEmpty(s string) string {
	if strings.TrimSpace(s) == "" {
		return "must not be empty"
	}
	return ""
}

func checkPath(s string) string {
	if s == "" {
		return "must be the path of a file"
	}
	return ""
}

func checkAddress(s string) string {
	if !isAddress(s) {
		return "must be host:port, such as 127.0.0.1:8080 or :8080"
	}
	return ""
}

func isAddress(s string) bool {
	_, port, err := net.SplitHostPort(s)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}

var hostShape = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$`)

func checkHost(s string) string {
	if _, err := netip.ParseAddr(s); err != nil && !hostShape.MatchString(s) {
		return "must be a host's name or address, without a port"
	}
	return ""
}

func checkMailAddress(s string) string {
	if _, err := mail.ParseAddress(s); err != nil {
		return "must be one e-mail address, such as shop@example.com or Shop <shop@example.com>"
	}
	return ""
}

func checkURL(s string) string {
	if u, err := url.Parse(s); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return "must be an absolute URL with http:// or https:// and a host"
	}
	return ""
}

// checkProviderURL takes a URL that holds no secret.
func checkProviderURL(s string) string {
	wrong := checkURL(s)
	if u, _ := url.Parse(s); wrong == "" && (u.User != nil || u.RawQuery != "" || u.Fragment != "") {
		return "must have no user, no query and no fragment"
	}
	return wrong
}

func checkWebhookURL(s string) string {
	wrong := checkURL(s)
	if u, _ := url.Parse(s); wrong == "" && u.User != nil {
		return "must have no user and password; use secret to prove who calls"
	}
	return wrong
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
