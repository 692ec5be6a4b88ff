package config

import (
	"encoding/base64"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/address"
	"github.com/sendquota/sendquota/internal/seal"
)

// The functions below check texts. They return an error message that does not quote the text, or "".

func unless(ok bool, wrong string) string {
	if ok {
		return ""
	}
	return wrong
}

// nameShape is the shape of the names of rules and channels.
var nameShape = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

const nameForm = "1 to 64 of a-z, 0-9, - and _"

// shaped checks for a shape.
func shaped(shape *regexp.Regexp, form string) func(string) string {
	return func(s string) string { return unless(shape.MatchString(s), "must be "+form) }
}

func checkNotEmpty(s string) string {
	return unless(strings.TrimSpace(s) != "", "must not be empty")
}

func checkPath(s string) string {
	return unless(s != "", "must be the path of a file")
}

func checkAddress(s string) string {
	return unless(isAddress(s), "must be host:port, such as 127.0.0.1:8080 or :8080")
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
	_, err := netip.ParseAddr(s)
	return unless(err == nil || hostShape.MatchString(s), "must be a host's name or address, without a port")
}

func checkMailAddress(s string) string {
	_, err := address.Parse(s)
	switch {
	case errors.Is(err, address.ErrForm):
		return "must be one e-mail address, such as shop@example.com or Shop <shop@example.com>"
	case err != nil:
		return err.Error()
	}
	return ""
}

// checkBounceAddress accepts an address that has {id} once, before the @.
func checkBounceAddress(s string) string {
	const id = "{id}"
	local, _, _ := strings.Cut(s, "@")
	a, err := address.Parse(strings.Replace(s, id, "00000000-0000-0000-0000-000000000000", 1))
	ok := err == nil && a.Name == "" && !strings.ContainsAny(s, "<> ") && strings.Count(s, id) == 1 && strings.Contains(local, id)
	return unless(ok, "must be an e-mail address with {id} once, before the @, such as bounces+{id}@example.com")
}

func checkURL(s string) string {
	u, err := url.Parse(s)
	ok := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
	if ok && u.Port() != "" {
		port, err := strconv.Atoi(u.Port())
		if err != nil || port < 1 || port > 65535 {
			return "must have a port from 1 to 65535"
		}
	}
	return unless(ok, "must be an absolute URL with http:// or https:// and a host")
}

// checkProviderURL accepts a URL without parts that may be secret.
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
		return "must have no user and password; use secret to sign requests"
	}
	return wrong
}

func checkSealKey(s string) string {
	if _, err := seal.New(s); err != nil {
		return err.Error()
	}
	return ""
}

// checkSigningSecret accepts a secret that Standard Webhooks can sign with.
func checkSigningSecret(s string) string {
	encoded, prefixed := strings.CutPrefix(s, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	switch {
	case strings.TrimSpace(s) != s:
		return "must not begin or end with white space"
	case prefixed && (err != nil || len(key) == 0):
		return "must have base64 after whsec_ (without whsec_ it is used unchanged)"
	case !prefixed && len(s) < 16:
		return "must be whsec_ and base64, or any other string of at least 16 bytes, which is used unchanged"
	}
	return ""
}
