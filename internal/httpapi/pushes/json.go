package pushes

import (
	"bytes"
	"encoding/json"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/rest"
)

// usualPush is the size of most pushes in an answer, in bytes.
const usualPush = 1024

func appendAll[T any](b []byte, all []T, one func(*T, []byte) []byte) []byte {
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = one(&all[i], b)
	}
	return append(b, ']')
}

func appendText(b []byte, name, text string) []byte {
	b, _ = jsontext.AppendQuote(append(b, name...), text) // the error reports invalid UTF-8, which was replaced
	return b
}

// appendSome omits an empty text.
func appendSome(b []byte, name, text string) []byte {
	if text == "" {
		return b
	}
	return appendText(b, name, text)
}

// appendMaybe writes null for nil.
func appendMaybe(b []byte, name string, text *string) []byte {
	if text == nil {
		return append(append(b, name...), `null`...)
	}
	return appendText(b, name, *text)
}

// appendRaw writes an object without the spaces between its tokens. The object is valid JSON.
func appendRaw(b []byte, name string, object []byte) []byte {
	b = append(b, name...)
	if object == nil {
		return append(b, `null`...)
	}
	from, inText := 0, false
	for i := 0; i < len(object); i++ {
		switch c := object[i]; {
		case c == '"':
			inText = !inText
		case inText && c == '\\':
			i++ // the escaped character may be a quotation mark
		case !inText && (c == ' ' || c == '\n' || c == '\t' || c == '\r'):
			b = append(b, object[from:i]...)
			from = i + 1
		}
	}
	return append(b, object[from:]...)
}

// appendValue writes a value that writes itself, or another value, which is rare or short.
func appendValue(b []byte, v any) []byte {
	if a, ok := v.(rest.Appender); ok {
		return a.AppendJSON(b)
	}
	text := bytes.NewBuffer(b)
	e := json.NewEncoder(text)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("an answer is no JSON: " + err.Error())
	}
	return bytes.TrimSuffix(text.Bytes(), []byte("\n"))
}
