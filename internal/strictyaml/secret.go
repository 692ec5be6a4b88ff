package strictyaml

import (
	"fmt"
	"regexp"
)

// Secret is a string that is never printed, logged or encoded, such as a password or a URL that may contain one. Convert it
// to string to use it.
//
// There is one exception: fmt calls no methods of unexported fields, so it prints a Secret in an unexported field of a
// struct.
type Secret string

const redacted = "[redacted]"

// String returns "" for an empty secret, and otherwise "[redacted]".
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// Format prints String for every verb of fmt, also for %#v and %d.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// MarshalText returns String, for JSON, YAML and slog.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Secret adds a text that must not be shown. In a file, ${NAME} stands for the value of an environment variable. The check
// returns an error message that does not quote the text, or "".
func (t *Table) Secret(name, preset, meaning string, to *Secret, check func(string) string) {
	t.add(name, preset, meaning, func(p Node) {
		p.hidden = true
		if p.in.object && p.masked() {
			p.BadKey("is masked: leave the member out to keep the secret, or send a new one")
			return
		}
		raw, ok := p.text(nil)
		if !ok {
			return
		}
		s, ok := p.expand(raw)
		if !ok {
			return
		}
		if wrong := check(s); wrong != "" {
			p.BadValue("%s", wrong)
			return
		}
		*to = Secret(s)
	})
	t.last().shown(Form{Kind: KindSecret}, func() any { return *to })
}

// A reference is ${…}; other dollar signs are plain text.
var (
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand replaces references by the values of variables. It does not expand references within a value.
func (p Node) expand(raw string) (expanded string, ok bool) {
	if p.in.object && reference.MatchString(raw) {
		p.BadKey("must not refer to a variable with ${…}: send the value itself")
		return "", false
	}
	if !p.in.expands {
		return raw, true
	}
	ok = true
	expanded = reference.ReplaceAllStringFunc(raw, func(ref string) string {
		name := ref[len("${") : len(ref)-len("}")]
		if !variableName.MatchString(name) {
			p.BadKey("has a ${…} that does not name an environment variable")
			ok = false
			return ""
		}
		value := p.in.env.values[name]
		if value == "" {
			p.BadKey("the environment variable %s is not set or empty", name)
			ok = false
		}
		return value
	})
	return expanded, ok
}
