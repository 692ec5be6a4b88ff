package httpapi

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// skipString moves over a string, with its quotes.
func (r *reader) skipString() {
	for r.pos++; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; {
		case c == '"':
			r.pos++
			return
		case c < ' ':
			r.fail("an escaped control character")
			return
		case c == '\\':
			r.pos++
			if r.skipEscape(); r.err != nil {
				return
			}
		}
	}
	r.fail("a closing quote")
}

// skipEscape moves to the last byte of an escape, whose backslash it is behind.
func (r *reader) skipEscape() {
	if r.pos < len(r.data) && bytes.IndexByte([]byte(`"\/bfnrt`), r.data[r.pos]) >= 0 {
		return
	}
	if r.pos == len(r.data) || r.data[r.pos] != 'u' {
		r.fail("an escape like \\n or \\u0041")
		return
	}
	for range 4 {
		if r.pos++; r.pos == len(r.data) || !isHex(r.data[r.pos]) {
			r.fail("a hexadecimal digit")
			return
		}
	}
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func (r *reader) skipNumber() {
	if r.data[r.pos] == '-' {
		r.pos++
	}
	if r.pos < len(r.data) && r.data[r.pos] == '0' {
		r.pos++
	} else {
		r.digits()
	}
	if r.pos < len(r.data) && r.data[r.pos] == '.' {
		r.pos++
		r.digits()
	}
	if r.pos < len(r.data) && (r.data[r.pos] == 'e' || r.data[r.pos] == 'E') {
		r.pos++
		if r.pos < len(r.data) && (r.data[r.pos] == '+' || r.data[r.pos] == '-') {
			r.pos++
		}
		r.digits()
	}
}

// digits moves over one digit or more.
func (r *reader) digits() {
	from := r.pos
	for r.pos < len(r.data) && r.data[r.pos] >= '0' && r.data[r.pos] <= '9' {
		r.pos++
	}
	if r.pos == from {
		r.fail("a digit")
	}
}

// unquote returns what the text of a JSON string stands for. It is false where
// escapes stand for half a character: two such strings must not become equal.
func unquote(text []byte) (string, bool) {
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1]), true
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil {
		return "", false
	}
	return s, !halfCharacter(text)
}

// halfCharacter finds an escaped UTF-16 surrogate without its partner.
func halfCharacter(text []byte) bool {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			continue
		}
		first, ok := escaped(text[i:])
		switch {
		case !ok:
			i++
		case utf16.IsSurrogate(first):
			second, ok := escaped(text[i+6:])
			if !ok || utf16.DecodeRune(first, second) == utf8.RuneError {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// escaped reads the UTF-16 unit of an escape like \u0041.
func escaped(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return rune(n), err == nil
}
