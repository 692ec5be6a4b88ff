package config

import (
	"net/url"
	"regexp"
	"strings"
)

// checkDatabaseURL says what is wrong with a [Config.DatabaseURL], or "".
func checkDatabaseURL(s string) string {
	_, wrong := parseDatabaseURL(s)
	return wrong
}

// plainDatabaseURL writes a URL that was checked so that every parser understands it alike.
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

	// databaseTarget is what follows the user and the password: hosts, the database, parameters.
	databaseTarget = regexp.MustCompile(`^` + databaseHost + `(,` + databaseHost + `)*(/[^/?#\x00-\x1f\x7f]*)?(\?(` + databaseParameter + `(&` + databaseParameter + `)*)?)?$`)

	// freeText are parameters whose values may well hold an @.
	freeText = regexp.MustCompile(`[?&](application_name|fallback_application_name|options|user|password)=[^&]*`)

	legalUserinfo = regexp.MustCompile(`^([\w.~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*$`) // as in RFC 3986
	escape        = regexp.MustCompile(`%[0-9a-fA-F]{2}`)
)

const (
	databaseHost      = `([\p{L}\p{N}_.%~-]*|\[[0-9a-zA-Z:.%]+\])(:[0-9]*)?`
	databaseParameter = `[A-Za-z_][\w.]*=[^&#\x00-\x1f\x7f]*`
)

// parseDatabaseURL percent-encodes a user or a password with characters that mean something else in a URL, if there is
// only one way to read the whole. It says what is wrong without quoting the URL, which has a password somewhere.
func parseDatabaseURL(s string) (plain, wrong string) {
	scheme := databaseScheme.FindString(s)
	if scheme == "" {
		return "", noDatabaseURL
	}
	userinfo, target, ok := splitDatabaseURL(s[len(scheme):])
	if !ok || strings.Contains(s, "%00") { // which no parser takes
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

// splitDatabaseURL finds the @ that ends the user and the password. It does not choose between several ways to read a
// URL, one of which would send a part of a password to the host that another part names. Only an @ in a parameter that
// holds free text is none of these.
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

// plainUserinfo percent-encodes what is not so already. It does not know what is meant by text that is so in parts.
func plainUserinfo(s string) (plain string, ok bool) {
	if legalUserinfo.MatchString(s) {
		return s, true
	}
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20"), !escape.MatchString(s)
}
