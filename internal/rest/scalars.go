package rest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// Scalar returns a value that parses a text and sets the result. parse returns the error as a text, or "".
func Scalar[T, V any](set func(*T, V), schema huma.Schema, parse func(text string) (v V, wrong string)) Value[T] {
	return Value[T]{quoted: schema.Type == huma.TypeString, Describe: Described(schema), parse: func(to *T, text string) string {
		v, wrong := parse(text)
		if wrong == "" {
			set(to, v)
		}
		return wrong
	}}
}

// Text reads a text of least to most printable bytes.
func Text[T any](set func(*T, string), least, most int) Value[T] {
	return Scalar(set, TextSchema(least, most), func(text string) (string, string) { return text, Unfit(text, least, most) })
}

// Named reads the name of a category, a channel or a rule. See [quota.Name].
func Named[T any](set func(*T, string), least, most int) Value[T] {
	return Scalar(set, TextSchema(least, most), func(text string) (string, string) {
		name := quota.Name(text)
		return name, Unfit(name, least, most)
	})
}

// TextSchema returns the schema of a text of least to most bytes.
func TextSchema(least, most int) huma.Schema {
	schema := huma.Schema{Type: huma.TypeString, MaxLength: &most}
	if least > 0 {
		schema.MinLength = &least
	}
	return schema
}

// Unfit returns an error if s does not consist of least to most printable bytes, or "".
func Unfit(s string, least, most int) string {
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

// OneOf reads one of the words.
func OneOf[T any, W ~string](set func(*T, W), words ...W) Value[T] {
	schema := huma.Schema{Type: huma.TypeString}
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = string(w)
		schema.Enum = append(schema.Enum, all[i])
	}
	wrong := "must be one of: " + strings.Join(all, ", ")
	return Scalar(set, schema, func(text string) (W, string) {
		if i := slices.Index(all, text); i >= 0 {
			return words[i], ""
		}
		return "", invalid.Suggested(wrong, text, all)
	})
}

// Boolean reads true or false. In a query, it must not be empty: a request like ?validate_only is ambiguous and
// must not be carried out.
func Boolean[T any](set func(*T, bool)) Value[T] {
	v := Scalar(set, huma.Schema{Type: huma.TypeBoolean}, func(text string) (bool, string) {
		if text != "true" && text != "false" {
			return false, "must be true or false"
		}
		return text == "true", ""
	})
	v.strict = true
	return v
}

// Integer reads a whole number from least to most.
func Integer[T any](set func(*T, int), least, most int) Value[T] {
	low, high := float64(least), float64(most)
	schema := huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: &low, Maximum: &high}
	return Scalar(set, schema, func(text string) (int, string) {
		n, err := strconv.Atoi(text)
		if err != nil || n < least || n > most {
			return 0, fmt.Sprintf("must be a whole number from %d to %d", least, most)
		}
		return n, ""
	})
}

// spanShape is the pattern of time spans in the document. Days come first.
const spanShape = `^([0-9]+([.][0-9]+)?d|([0-9]+([.][0-9]+)?d)?([0-9]+([.][0-9]+)?(ms|s|m|h))+)$`

// Span reads a time span from least to most.
func Span[T any](set func(*T, time.Duration), least, most time.Duration) Value[T] {
	shape := regexp.MustCompile(spanShape)
	return Scalar(set, huma.Schema{Type: huma.TypeString, Pattern: spanShape}, func(text string) (time.Duration, string) {
		d, err := duration.Parse(text)
		if err != nil || !shape.MatchString(text) || d < least || d > most {
			return 0, fmt.Sprintf("must be a time span from %s to %s, written like 500ms, 90s, 24h or 30d", duration.Words(least), duration.Words(most))
		}
		return d, ""
	})
}

// Identifier reads a UUID.
func Identifier[T any](set func(*T, uuid.UUID)) Value[T] {
	return Scalar(set, huma.Schema{Type: huma.TypeString, Format: "uuid"}, parseID)
}

func parseID(text string) (id uuid.UUID, wrong string) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != 36 {
		return uuid.Nil, "must be a UUID"
	}
	return id, ""
}

// Token reads any text, unchecked.
func Token[T any](set func(*T, string)) Value[T] {
	return Scalar(set, huma.Schema{Type: huma.TypeString}, func(text string) (string, string) { return text, "" })
}

// TimeExample is a time in examples and errors.
const TimeExample = "2026-12-01T09:00:00Z"

// Moment reads a time with a zone.
func Moment[T any](set func(*T, time.Time)) Value[T] {
	v := Scalar(set, huma.Schema{Type: huma.TypeString, Format: "date-time"}, parseTime)
	v.mend = restorePlus
	return v
}

// restorePlus restores the plus sign of a zone, which a query without escapes turns into a space.
func restorePlus(text string) string {
	if n := len(text) - len("+00:00"); n > 0 && text[n] == ' ' {
		return text[:n] + "+" + text[n+1:]
	}
	return text
}

// parseTime reads a time of RFC 3339 in the years 1 to 9999 of UTC, strictly. It returns the error as a text, or "". It
// never returns the zero time, which means an absent one.
func parseTime(s string) (time.Time, string) {
	t, err := parseRFC3339(s)
	if err != nil {
		if _, err := parseRFC3339(s + "Z"); err == nil {
			return time.Time{}, "needs a time zone, like " + TimeExample
		}
		return time.Time{}, "must be a time like " + TimeExample
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, "must lie in the years 1 to 9999"
	}
	if t.IsZero() {
		t = t.Add(time.Nanosecond)
	}
	return t, ""
}

// parseRFC3339 accepts a lower-case t and z, like the RFC, but rejects some texts that time.Parse accepts: 9:00 for 09:00, a comma
// for a point, a zone of +25:00.
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

// LocalExample is a local time in examples.
const LocalExample = "2026-12-01T09:00:00"

// LocalMoment reads a local time without a zone.
func LocalMoment[T any](set func(*T, time.Time)) Value[T] {
	schema := huma.Schema{Type: huma.TypeString, Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$`}
	return Scalar(set, schema, func(text string) (time.Time, string) {
		t, err := zone.ParseLocal(text)
		switch {
		case err != nil:
			return t, err.Error()
		case t.Year() < 2:
			return t, "must lie in the years 2 to 9999"
		}
		return t, ""
	})
}
