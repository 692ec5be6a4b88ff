package config

import (
	"net/url"
	"regexp"
	"strings"
)

// checkDatabaseURL returns the error of a [Config.DatabaseURL], or "".
func checkDatabaseURL(s string) string {
	_, wrong := parseDatabaseURL(s)
	return wrong
}

// plainDatabaseURL rewrites a checked URL so that every parser reads it in the same way.
func plainDatabaseURL(s Secret) Secret {
	plain, _ := parseDatabaseURL(string(s))
	return Secret(plain)
}

const (
	noDatabaseURL      = "must begin with postgres:// or postgresql://"
	unclearDatabaseURL = "must look like postgres://user:password@host:port/database?parameter=value, with one meaning only: write @ as %40, / as %2F, # as %23, ? as %3F, " +
		"% as %25 and a space as %20 wherever they belong to a user, a password, a database or a value; or leave the password out and set PGPASSWORD"
)

var (
	databaseScheme = regexp.MustCompile(`^postgres(ql)?://`)

	// databaseTarget matches the part after the user and the password: hosts, the database, parameters.
	databaseTarget = regexp.MustCompile(`^` + databaseHost + `(,` + databaseHost + `)*(/[^/?#\x00-\x1f\x7f]*)?(\?(` + databaseParameter + `(&` + databaseParameter + `)*)?)?$`)

	// freeText matches parameters with values that may contain an @.
	freeText = regexp.MustCompile(`[?&](application_name|fallback_application_name|options|user|password)=[^&]*`)

	legalUserinfo = regexp.MustCompile(`^([\w.~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*$`) // as in RFC 3986
	escape        = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
)

const (
	databaseHost      = `([\p{L}\p{N}_.%~-]*|\[[0-9a-zA-Z:.%]+\])(:[0-9]*)?`
	databaseParameter = `[A-Za-z_][\w.]*=[^&#\x00-\x1f\x7f]*`
)

// parseDatabaseURL percent-encodes special characters in the user and the password, if there is only one way to read the
// URL. The error does not quote the URL, which contains a password.
func parseDatabaseURL(s string) (plain, wrong string) {
	scheme := databaseScheme.FindString(s)
	if scheme == "" {
		return "", noDatabaseURL
	}
	userinfo, target, ok := splitDatabaseURL(s[len(scheme):])
	if !ok || strings.Contains(s, "%00") { // no parser accepts it
		return "", unclearDatabaseURL
	}
	if userinfo == "" {
		return s, ""
	}
	user, password, colon := strings.Cut(strings.TrimSuffix(userinfo, "@"), ":")
	plainUser, ok1 := plainUserinfo(user)
	plainPassword, ok2 := plainUserinfo(password)
	if !ok1 || !ok2 {
		return "", unclearDatabaseURL
	}
	if colon {
		plainPassword = ":" + plainPassword
	}
	return scheme + plainUser + plainPassword + "@" + target, ""
}

// splitDatabaseURL finds the @ that ends the user and the password. It rejects a URL with several readings, because a wrong
// one would send a part of the password to a wrong host. An @ in a parameter with free text does not count.
func splitDatabaseURL(rest string) (userinfo, target string, ok bool) {
	var ends []int
	for end := 0; end <= len(rest); end++ {
		if end > 0 && rest[end-1] != '@' || !isDatabaseTarget(rest[end:]) {
			continue
		}
		if user, _, _ := strings.Cut(rest[:end], ":"); !strings.ContainsAny(user, "/?#") {
			ends = append(ends, end)
		}
	}
	if len(ends) == 1 || len(ends) > 1 && !strings.Contains(freeText.ReplaceAllString(rest[ends[0]:], ""), "@") {
		return rest[:ends[0]], rest[ends[0]:], true
	}
	return "", "", false
}

func isDatabaseTarget(s string) bool {
	_, err := url.PathUnescape(s)
	return err == nil && databaseTarget.MatchString(s)
}

// plainUserinfo percent-encodes a text, unless it is encoded already. It rejects a text that is only partly encoded.
func plainUserinfo(s string) (plain string, ok bool) {
	if legalUserinfo.MatchString(s) {
		return s, true
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), !escape.MatchString(s)
}
