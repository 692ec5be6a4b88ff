package liquid

import (
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// The bounds of one rendering of a message.
const (
	maxSteps = 100_000   // about a twentieth of a second
	maxText  = 256 << 10 // bytes, of the message and of each value
	maxItems = 10_000    // of each list
)

var (
	errSteps = fmt.Errorf("it takes too long: over %d steps, which is about 50 ms", maxSteps)
	errText  = fmt.Errorf("it makes over %d bytes", maxText)
	errItems = fmt.Errorf("it makes a list of over %d items", maxItems)
)

// unknown is the value of a variable that does not exist.
type unknown struct{ name string }

func (u unknown) fault() error {
	return fmt.Errorf("there is no variable %s; the filter default gives a value for that", short(u.name))
}

// machine renders one message at a time.
type machine struct {
	given    map[string]any // the recipient's variables
	known    map[string]any // the variables in the form that expressions use
	vars     map[string]any // of the current template
	counters map[string]int
	cycles   map[string]int
	offsets  map[string]int // where a loop has ended, for offset: continue
	last     string         // the last output of an ifchanged

	at func() time.Time // the time of sending, in the recipient's zone

	html  bool
	out   []byte
	steps int
	bytes int // of all templates of the message
}

func newMachine() *machine {
	return &machine{vars: map[string]any{}, known: map[string]any{}, counters: map[string]int{}, cycles: map[string]int{}, offsets: map[string]int{}}
}

func (m *machine) start(variables map[string]any, at func() time.Time) {
	clear(m.known)
	m.given, m.at, m.steps, m.bytes = variables, at, 0, 0
}

// render renders one string of the message.
func (m *machine) render(p *part) (string, error) {
	clear(m.vars)
	clear(m.counters)
	clear(m.cycles)
	clear(m.offsets)
	m.out, m.html, m.last = m.out[:0], p.html, ""
	if err := p.template.body.run(m); err != nil {
		return "", err
	}
	m.bytes += len(m.out)
	text := strings.ToValidUTF8(string(m.out), "\uFFFD")
	if p.oneLine {
		text = oneLine.Replace(text)
	}
	return text, nil
}

var oneLine = strings.NewReplacer("\r\n", " ", "\r", " ", "\n", " ", "\u2028", " ", "\u2029", " ", "\u0085", " ", "\v", " ", "\f", " ")

// captured runs a body and returns its output.
func (m *machine) captured(b body) (string, error) {
	outer := m.out
	m.out = nil
	err := b.run(m)
	text := string(m.out)
	m.out = outer
	return text, err
}

// variable returns the value of a variable of the template, of the recipient, or of a counter.
func (m *machine) variable(name string) (any, error) {
	if v, ok := m.vars[name]; ok {
		return v, nil
	}
	if v, ok := m.known[name]; ok {
		return v, nil
	}
	if v, ok := m.given[name]; ok {
		v = plain(v)
		m.known[name] = v
		return v, m.measure(v)
	}
	if n, ok := m.counters[name]; ok {
		return n, nil
	}
	return unknown{name}, nil
}

// need evaluates an expression. All its variables must exist.
func (m *machine) need(e expression) (any, error) {
	v, err := e.eval(m)
	if u, ok := v.(unknown); ok && err == nil {
		return nil, u.fault()
	}
	return v, err
}

// maybe evaluates an expression. A variable that does not exist is nil.
func (m *machine) maybe(e expression) (any, error) {
	v, err := e.eval(m)
	if _, ok := v.(unknown); ok {
		return nil, err
	}
	return v, err
}

// wholeOf evaluates an expression that must be a whole number.
func (m *machine) wholeOf(e expression, of string) (int, error) {
	v, err := m.need(e)
	if err != nil {
		return 0, err
	}
	n, ok := number(v)
	if !ok {
		return 0, fmt.Errorf("%s must be a whole number, and is %s", of, kindOfValue(v))
	}
	return truncated(n)
}

// measure counts the work of reading a value.
func (m *machine) measure(v any) error {
	bytes, items := size(v, 0)
	switch {
	case bytes > maxText:
		return errText
	case items > maxItems:
		return errItems
	}
	return m.read(bytes + 16*items)
}

// size returns the number of bytes of a value, and of items of its lists. It stops when either is too large.
func size(v any, items int) (bytes, all int) {
	switch v := v.(type) {
	case string:
		return len(v), items
	case markup:
		return len(v), items
	case []any:
		items += len(v)
		for i := 0; i < len(v) && items <= maxItems && bytes <= maxText; i++ {
			var n int
			n, items = size(v[i], items)
			bytes += n
		}
	case *object:
		items += len(v.names)
		for _, name := range v.names {
			var n int
			n, items = size(v.values[name], items)
			if bytes += n + len(name); items > maxItems || bytes > maxText {
				break
			}
		}
	case span:
		items += v.len()
	}
	return bytes, items
}

// bytesOf estimates how many bytes of a value a comparison reads.
func bytesOf(v any) int {
	bytes, items := size(v, 0)
	return bytes + 16*items
}

// yieldSteps is the number of steps, about a millisecond, after which the machine yields the processor once.
const yieldSteps = 2000

// step counts n steps.
func (m *machine) step(n int) error {
	before := m.steps
	if m.steps += n; m.steps > maxSteps {
		return errSteps
	}
	if m.steps/yieldSteps != before/yieldSteps {
		bulkhead.Yield()
	}
	return nil
}

// read counts the work of reading or writing bytes.
func (m *machine) read(bytes int) error { return m.step(1 + bytes/64) }

func (m *machine) write(text string) error {
	m.out = append(m.out, text...)
	if m.bytes+len(m.out) > maxText {
		return errText
	}
	return m.read(len(text))
}

// put writes a value. In HTML it is escaped, unless it is markup.
func (m *machine) put(v any) error {
	if list, ok := v.([]any); ok {
		for _, one := range list {
			if err := m.put(one); err != nil {
				return err
			}
		}
		return nil
	}
	text := textOf(v)
	if _, safe := v.(markup); m.html && !safe {
		text = escape(text)
	}
	return m.write(text)
}
