package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
)

// requestHash condenses what a request asks for, to recognize its repetition:
// white space, escapes and the order of members make no difference. The body
// must have been read without a fault.
func requestHash(route string, body []byte) []byte {
	text := make([]byte, 0, len(route)+1+len(body))
	text = append(append(text, route...), 0)
	sum := sha256.Sum256(appendCanonical(text, &reader{data: body}))
	return sum[:]
}

// member is where the canonical text of a member is, its name included.
type member struct {
	name     string
	from, to int
}

// appendCanonical reads one value and appends its canonical text: no white
// space, members sorted by name and each there once, strings written in one
// way. Numbers stay as they are: 1 and 1.0 are different requests.
func appendCanonical(to []byte, r *reader) []byte {
	switch r.peek() {
	case '{':
		return appendCanonicalObject(to, r)
	case '[':
		to = append(to, '[')
		for range r.elements {
			to = append(appendCanonical(to, r), ',')
		}
		return append(to, ']')
	case '"':
		return appendCanonicalString(to, r.value())
	}
	return append(to, r.value()...)
}

func appendCanonicalObject(to []byte, r *reader) []byte {
	to = append(to, '{')
	begin := len(to)
	members := make([]member, 0, 16)
	sorted := true
	for name := range r.members {
		m := member{name: string(name), from: len(to)}
		to = append(appendQuoted(to, m.name), ':')
		to = append(appendCanonical(to, r), ',')
		m.to = len(to)
		sorted = sorted && (len(members) == 0 || members[len(members)-1].name < m.name)
		members = append(members, m)
	}
	if !sorted {
		to = arrange(to, begin, members)
	}
	return append(to, '}')
}

// arrange sorts the members that are written behind begin. Of several with the
// same name only the last stays.
func arrange(text []byte, begin int, members []member) []byte {
	slices.SortStableFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	written := bytes.Clone(text[begin:])
	text = text[:begin]
	for i, m := range members {
		if i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		text = append(text, written[m.from-begin:m.to-begin]...)
	}
	return text
}

// appendCanonicalString writes a string without needless escapes. One with
// half a character has no other form than its own.
func appendCanonicalString(to, raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return append(to, raw...)
	}
	s, whole := unquote(raw)
	if !whole {
		return append(to, raw...)
	}
	return appendQuoted(to, s)
}

// appendQuoted writes a string of valid UTF-8 with those escapes only without
// which it would be no JSON.
func appendQuoted(to []byte, s string) []byte {
	to = append(to, '"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			to = append(to, '\\', c)
		case c < ' ':
			to = fmt.Appendf(to, `\u%04x`, c)
		default:
			to = append(to, c)
		}
	}
	return append(to, '"')
}
