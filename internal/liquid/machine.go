package liquid

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/values"
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

// unknown is the fault of a variable that there is not.
func unknown(name string) error {
	return fmt.Errorf("there is no variable %s; the filter default gives a value for that", short(name))
}

// machine renders one message at a time.
type machine struct {
	given    map[string]any // of the recipient
	vars     map[string]any // of the template that is rendered
	context  expressions.Context
	missed   []string        // variables that there are not, and that the expression has asked for
	path     string          // that the expression begins with
	captured map[string]bool // variables whose text is escaped as it is to be
	cycles   map[string]int

	html  bool
	out   []byte
	steps int
	bytes int // of all templates of the message

	largest int // of the values that there are, in bytes
}

func newMachine() *machine {
	m := &machine{vars: map[string]any{}, captured: map[string]bool{}, cycles: map[string]int{}}
	var c expressions.Config
	for name, f := range filters {
		c.AddFilter(name, m.filter(name, f))
	}
	m.context = expressions.NewContext(m.vars, c)
	return m
}

func (m *machine) start(variables map[string]any) {
	m.given, m.steps, m.bytes, m.largest = variables, 0, 0, 0
}

// render renders one string of the message.
func (m *machine) render(p *part) (string, error) {
	clear(m.vars)
	clear(m.captured)
	clear(m.cycles)
	m.out, m.html = m.out[:0], p.html
	for _, name := range p.template.names {
		if v, ok := m.given[name]; ok {
			m.vars[name] = plain(v)
			if err := m.measure(m.vars[name]); err != nil {
				return "", err
			}
		} else {
			m.vars[name] = missing{m, name}
		}
	}
	if err := m.all(p.template.body); err != nil {
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

// missing stands for a variable that there is not, and notes that it was asked for.
type missing struct {
	m    *machine
	name string
}

// ToLiquid is asked for its value by the package of expressions.
func (x missing) ToLiquid() any {
	x.m.missed = append(x.m.missed, x.name)
	return nil
}

func (m *machine) all(nodes []node) error {
	for _, n := range nodes {
		if err := n.run(m); err != nil {
			return err
		}
	}
	return nil
}

func (m *machine) set(name string, v any) {
	m.vars[name] = v
	delete(m.captured, name)
	if text, ok := v.(string); ok {
		m.largest = max(m.largest, len(text))
	}
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
	m.largest = max(m.largest, bytes)
	return m.read(bytes + 16*items)
}

// size is how many bytes a value has, and how many items its lists have. It stops where that is too much.
func size(v any, items int) (bytes, all int) {
	switch v := v.(type) {
	case string:
		return len(v), items
	case []any:
		items += len(v)
		for i := 0; i < len(v) && items <= maxItems && bytes <= maxText; i++ {
			var n int
			n, items = size(v[i], items)
			bytes += n
		}
	case []string:
		items += len(v)
		for i := 0; i < len(v) && items <= maxItems && bytes <= maxText; i++ {
			bytes += len(v[i])
		}
	case map[string]any:
		items += len(v)
		for name, one := range v {
			var n int
			n, items = size(one, items)
			if bytes += n + len(name); items > maxItems || bytes > maxText {
				break
			}
		}
	case values.Range:
		items += lengthOf(v)
	}
	return bytes, items
}

// step counts what is done.
func (m *machine) step(n int) error {
	if m.steps += n; m.steps > maxSteps {
		return errSteps
	}
	return nil
}

// read counts that so many bytes are read or written.
func (m *machine) read(bytes int) error { return m.step(bytes / 64) }

func (m *machine) write(text string) error {
	m.out = append(m.out, text...)
	if m.bytes+len(m.out) > maxText {
		return errText
	}
	return m.read(len(text))
}

// put writes a value.
func (m *machine) put(v any, escaped bool) error {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			if err := m.put(one, escaped); err != nil {
				return err
			}
		}
		return nil
	case []string:
		for _, one := range v {
			if err := m.put(one, escaped); err != nil {
				return err
			}
		}
		return nil
	}
	text := written(v)
	if escaped {
		text = escape(text)
	}
	return m.write(text)
}

// value evaluates an expression whose variables must be there.
func (m *machine) value(e expression) (any, error) {
	v, err := m.evaluate(e)
	if err == nil && len(m.missed) > 0 {
		return nil, unknown(m.missed[0])
	}
	return v, err
}

// tested is value, but for what asks whether a variable is there.
func (m *machine) tested(t test) (any, error) {
	if t.asks {
		return m.evaluate(t.expression)
	}
	return m.value(t.expression)
}

func (m *machine) evaluate(e expression) (v any, err error) {
	if err := m.step((1 + e.size/8) * (1 + m.largest/256)); err != nil {
		return nil, err
	}
	m.missed, m.path = m.missed[:0], e.path
	defer func() {
		if p := recover(); p != nil { // by a filter, or a comparison, of values of another kind
			v, err = nil, m.misfit()
		}
	}()
	v, err = e.Evaluate(m.context)
	switch wrong := err.(type) {
	case expressions.FilterError:
		return nil, wrong.Err
	case nil:
		return v, nil
	}
	return nil, m.misfit()
}

// misfit is the fault of an expression that can not be evaluated: for the lack of a variable, or whatever else.
func (m *machine) misfit() error {
	if len(m.missed) > 0 {
		return unknown(m.missed[0])
	}
	return errors.New("an expression does not fit its values")
}

// number evaluates an expression that must be a whole number.
func (m *machine) number(e expression, of string) (int, error) {
	v, err := m.value(e)
	if err != nil {
		return 0, err
	}
	switch v := v.(type) {
	case int:
		return v, nil
	case string:
		if n, err := strconv.Atoi(v); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("the %s of a for must be a whole number", of)
}
