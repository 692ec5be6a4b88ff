package httpapi

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/invalid"
)

// rawJSON is a JSON value that is passed on as it is.
type rawJSON []byte

// MarshalJSON returns the value.
func (r rawJSON) MarshalJSON() ([]byte, error) { return r, nil }

// fields reads the members of one JSON object into Go values and collects what
// is wrong with them. Locations are relative to the object.
type fields struct {
	faults invalid.FieldErrors
}

func (f *fields) bad(name, message string, raw []byte) {
	f.faults = append(f.faults, invalid.FieldError{Field: name, Message: message, Value: shownJSON(raw)})
}

// faulty reports whether a field was already found wrong, or a part of it, or
// what it is part of.
func (f *fields) faulty(name string) bool {
	for _, one := range f.faults {
		if within(one.Field, name) || within(name, one.Field) {
			return true
		}
	}
	return false
}

// within reports whether a location is another one or lies under it.
func within(location, other string) bool {
	rest, ok := strings.CutPrefix(location, other)
	return ok && other != "" && (rest == "" || rest[0] == '.')
}

// unknown faults a member that the object does not have.
func (f *fields) unknown(name, raw []byte) {
	message := "unexpected property"
	switch string(name) {
	case "local_time", "time_zone":
		message = "is not supported by this version; use send_at with a zone"
	}
	f.bad(short(name), message, raw)
}

// short cuts a name that is used in a location.
func short(name []byte) string {
	if len(name) <= 64 {
		return string(name)
	}
	return strings.ToValidUTF8(string(name[:64]), "") + "…"
}

// missing faults a member that has to be there.
func (f *fields) missing(name string) { f.bad(name, "is required", nil) }

// string reads a string.
func (f *fields) string(name string, raw []byte) (string, bool) {
	if raw[0] != '"' {
		f.bad(name, "must be a string", raw)
		return "", false
	}
	s, ok := unquote(raw)
	if !ok {
		f.bad(name, "must be valid Unicode: it has half of a surrogate pair", raw)
	}
	return s, ok
}

// text reads a string of least to most printable bytes.
func (f *fields) text(name string, raw []byte, least, most int) string {
	s, ok := f.string(name, raw)
	if !ok {
		return ""
	}
	if message := unfit(s, least, most); message != "" {
		f.bad(name, message, raw)
		return ""
	}
	return s
}

// unfit says why s does not consist of least to most printable bytes, or
// nothing.
func unfit(s string, least, most int) string {
	switch {
	case len(s) < least:
		return "must not be empty"
	case len(s) > most:
		return fmt.Sprintf("must have at most %d bytes, has %d", most, len(s))
	case !utf8.ValidString(s):
		return "must be valid UTF-8"
	}
	for _, c := range s {
		if !unicode.IsPrint(c) {
			return fmt.Sprintf("must be printable, but has the character %U", c)
		}
	}
	return ""
}

// bool reads true or false.
func (f *fields) bool(name string, raw []byte) bool {
	if raw[0] != 't' && raw[0] != 'f' {
		f.bad(name, "must be true or false", raw)
	}
	return raw[0] == 't'
}

// oneOf reads one of a few words.
func (f *fields) oneOf(name string, raw []byte, words ...string) string {
	s, ok := f.string(name, raw)
	if !ok {
		return ""
	}
	for _, w := range words {
		if s == w {
			return w
		}
	}
	f.bad(name, "must be one of: "+strings.Join(words, ", "), raw)
	return ""
}

// time reads a time with a zone, and returns also how it was written.
func (f *fields) time(name string, raw []byte) (time.Time, string) {
	s, ok := f.string(name, raw)
	if !ok {
		return time.Time{}, ""
	}
	t, message := parseTime(s)
	if message != "" {
		f.bad(name, message, raw)
	}
	return t, s
}

// object reads any JSON object.
func (f *fields) object(name string, raw []byte) []byte {
	if raw[0] != '{' {
		f.bad(name, "must be an object", raw)
		return nil
	}
	return raw
}

const timeExample = "2026-12-01T09:00:00Z"

// parseTime reads a time of RFC 3339 to the letter, in the years 1 to 9999 of
// UTC, or says what is wrong with it. It never returns the zero time, which
// stands for an absent one.
func parseTime(s string) (time.Time, string) {
	t, err := parseRFC3339(s)
	if err != nil {
		if _, err := parseRFC3339(s + "Z"); err == nil {
			return time.Time{}, "needs a time zone, like " + timeExample
		}
		return time.Time{}, "must be a time like " + timeExample
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, "must lie in the years 1 to 9999"
	}
	if t.IsZero() {
		t = t.Add(time.Nanosecond)
	}
	return t, ""
}

// parseRFC3339 allows a lower-case t and z, as the RFC does, but not what
// time.Parse lets pass: 9:00 for 09:00, a comma for a point, a zone of +25:00.
func parseRFC3339(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, err
	}
	if s[13] != ':' || strings.Contains(s, ",") {
		return t, errSloppy
	}
	if zone := s[len(s)-len("00:00"):]; s[len(s)-1] != 'Z' && (zone[:2] > "23" || zone[3:] > "59") {
		return t, errSloppy
	}
	return t, nil
}

var errSloppy = errors.New("not quite RFC 3339")
