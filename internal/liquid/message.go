package liquid

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/zone"
)

// MaxTemplate is the maximum size of all strings of a message, in bytes.
const MaxTemplate = 64 << 10

// Message is the common message of many recipients: JSON in which each string is a template, except the names of
// members. It is safe for concurrent use.
type Message struct {
	parts    []part
	machines sync.Pool
}

// part is a piece of the message: fixed text, and a string after it.
type part struct {
	text     []byte    // the text before the string
	template *template // nil: no string follows
	field    string    // such as message.data.items[2]
	html     bool      // values are escaped
	oneLine  bool      // line breaks become spaces
}

// Parse reads the templates of a message, a JSON object, or returns all errors.
func Parse(message json.RawMessage) (*Message, invalid.FieldErrors) {
	var (
		m    = &Message{}
		bad  invalid.FieldErrors
		from = 0 // text before this index is already in the parts
		size = 0
	)
	m.machines.New = func() any { return newMachine() }
	for s := range stringsOf(message) {
		size += len(s.text)
		if !s.templated() {
			continue
		}
		p := part{field: s.field, html: s.field == "message.html", oneLine: s.oneLine()}
		start := s.end - len(literalBefore(message[:s.end]))
		p.text, from = message[from:start], s.end
		var err error
		if p.template, err = parse(s.text); err != nil {
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

// Templated reports whether a field of a message, such as message.data, is a template or contains one. It does not
// parse the template, which may take long.
func Templated(message json.RawMessage, field string) bool {
	for s := range stringsOf(message) {
		if rest, ok := strings.CutPrefix(s.field, field); ok && s.templated() && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return true
		}
	}
	return false
}

// messageString is a string of a message that is not a member's name.
type messageString struct {
	field, text string
	end         int // the index of its end in the message
}

// stringsOf yields the strings of a message.
func stringsOf(message json.RawMessage) iter.Seq[messageString] {
	return func(yield func(messageString) bool) {
		d := jsontext.NewDecoder(strings.NewReader(string(message)), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
		for {
			token, err := d.ReadToken()
			if err != nil {
				return // at the end: it is JSON
			}
			if kind, n := d.StackIndex(d.StackDepth()); token.Kind() != '"' || kind == '{' && n%2 == 1 {
				continue
			}
			if !yield(messageString{place(d), token.String(), int(d.InputOffset())}) {
				return
			}
		}
	}
}

// oneLine reports whether line breaks in the output become spaces.
func (s *messageString) oneLine() bool { return s.field == "message.title" }

func (s *messageString) templated() bool {
	return templated(s.text) || s.oneLine() && strings.ContainsAny(s.text, "\r\n")
}

// Fault is an error of a rendering. It contains no value of the recipient.
type Fault struct {
	Field   string // such as message.title
	Message string
}

// Error returns the field and the message.
func (f *Fault) Error() string { return f.Field + ": " + f.Message }

// Render renders the message for a recipient with the given variables. If a template uses now, at returns the time of
// sending in the recipient's zone. The error is a [Fault].
func (m *Message) Render(variables map[string]any, at func() time.Time) (json.RawMessage, error) {
	if len(m.parts) == 1 {
		return m.parts[0].text, nil
	}
	run := m.machines.Get().(*machine)
	defer m.machines.Put(run)
	run.start(variables, at)
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

// Rendering is the source of a message that contains its time of sending. It is stored as JSON, and renders the message
// again when that time changes.
type Rendering struct {
	Message json.RawMessage   `json:"message"` // with its templates
	Known   []json.RawMessage `json:"known"`   // see [Variables]
	Zone    string            `json:"zone"`    // of the recipient: an IANA name
}

// Again renders the message of a JSON [Rendering] for another time of sending.
func Again(rendering json.RawMessage, at time.Time) (json.RawMessage, error) {
	var of Rendering
	if err := json.Unmarshal(rendering, &of); err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	in, err := zone.Load(of.Zone)
	if err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	variables, err := Variables(of.Known...)
	if err != nil {
		return nil, fmt.Errorf("read rendering: %w", err)
	}
	m, bad := Parse(of.Message)
	if err := bad.Err(); err != nil {
		return nil, err
	}
	return m.Render(variables, func() time.Time { return at.In(in) })
}
