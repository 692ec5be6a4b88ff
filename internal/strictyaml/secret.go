package strictyaml

import (
	"fmt"
	"regexp"
)

// Secret is a string that is never printed, logged or encoded, such as a password or a URL that may hold one. Convert it
// to string to use it.
//
// One way around it exists: fmt calls no methods of unexported fields, so it prints a Secret in an unexported field of a
// struct.
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

// Secret adds a text that must not be shown. In a file, ${NAME} stands for the value of an environment variable. The check
// returns what is wrong with the text, without quoting it, or "".
func (t *Table) Secret(name, preset, meaning string, to *Secret, check func(string) string) {
	t.add(name, preset, meaning, func(p Place) {
		p.hidden = true
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
}

// A reference is ${…}; other dollar signs mean nothing.
var (
	reference    = regexp.MustCompile(`\$\{([^}]*)\}`)
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

// expand puts the values of variables in place of their references. A reference within a value stays as it is.
func (p Place) expand(raw string) (expanded string, ok bool) {
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
