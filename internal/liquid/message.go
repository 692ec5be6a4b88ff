package liquid

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/invalid"
)

// MaxTemplate is how many bytes the strings of a message may have in all.
const MaxTemplate = 64 << 10

// Message is the message of many recipients: JSON, in which each string is a template, but for the names of members. It is safe
// for concurrent use.
type Message struct {
	parts    []part
	machines sync.Pool
}

// part is a piece of the message: text that stays as it is, or a string.
type part struct {
	text     []byte    // that stands before the string
	template *template // nil: there is no string behind the text
	field    string    // such as message.data.items[2]
	html     bool      // values are escaped
	oneLine  bool      // line breaks become spaces
}

// Parse reads the templates of a message, a JSON object, or says all that is wrong with them.
func Parse(message json.RawMessage) (*Message, invalid.FieldErrors) {
	var (
		m    = &Message{}
		bad  invalid.FieldErrors
		d    = jsontext.NewDecoder(strings.NewReader(string(message)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		from = 0 // what is before this is in the parts
		size = 0
	)
	m.machines.New = func() any { return newMachine() }
	for {
		token, err := d.ReadToken()
		if err != nil {
			break // at the end: it is JSON
		}
		if kind, n := d.StackIndex(d.StackDepth()); token.Kind() != '"' || kind == '{' && n%2 == 1 {
			continue
		}
		p := part{field: place(d)}
		p.html, p.oneLine = p.field == "message.html", p.field == "message.title"
		text := token.String()
		size += len(text)
		if !templated(text) && !(p.oneLine && strings.ContainsAny(text, "\r\n")) {
			continue
		}
		end := int(d.InputOffset())
		start := end - len(literalBefore(message[:end]))
		p.text, from = message[from:start], end
		if p.template, err = parse(text); err != nil {
			bad.Add(p.field, nil, "%s", err)
		}
		m.parts = append(m.parts, p)
	}
	m.parts = append(m.parts, part{text: message[from:]})
	if size > MaxTemplate {
		bad = append(invalid.FieldErrors{{Field: "message", Message: tooLong(size)}}, bad...)
	}
	return m, bad
}

// Templated reports whether a field of the message, such as message.data, is a template or has one in it.
func (m *Message) Templated(field string) bool {
	for _, p := range m.parts {
		if rest, ok := strings.CutPrefix(p.field, field); ok && p.template != nil && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// Fault is what is wrong with a rendering, without a value.
type Fault struct {
	Field   string // such as message.title
	Message string
}

// Error is the field and the message.
func (f *Fault) Error() string { return f.Field + ": " + f.Message }

// Render makes the message of a recipient of whom these variables are known. The error is a [Fault].
func (m *Message) Render(variables map[string]any) (json.RawMessage, error) {
	if len(m.parts) == 1 {
		return m.parts[0].text, nil
	}
	run := m.machines.Get().(*machine)
	defer m.machines.Put(run)
	run.start(variables)
	var out []byte
	for i := range m.parts {
		p := &m.parts[i]
		out = append(out, p.text...)
		if p.template == nil {
			continue
		}
		text, err := run.render(p)
		if err != nil {
			return nil, &Fault{p.field, err.Error()}
		}
		if out, err = jsontext.AppendQuote(out, text); err != nil {
			return nil, &Fault{p.field, err.Error()}
		}
	}
	return out, nil
}
