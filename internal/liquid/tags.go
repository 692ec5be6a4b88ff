package liquid

import (
	"regexp"
	"strings"
)

// literal is fixed text.
type literal string

func (n literal) run(m *machine) error { return m.write(string(n)) }
func (n literal) blank() bool          { return strings.Trim(string(n), spaces) == "" }

// raw is the text of a raw, which is always written.
type raw string

func (n raw) run(m *machine) error { return m.write(string(n)) }
func (n raw) blank() bool          { return false }

// output writes a value.
type output struct{ of expression }

func (n output) run(m *machine) error {
	v, err := m.need(n.of)
	if err != nil {
		return err
	}
	return m.put(v)
}

func (n output) blank() bool { return false }

// echo reads an output in the form of a tag.
func (p *parser) echo(t token) (node, error) {
	if strings.Trim(t.args, spaces) == "" {
		return output{constant{""}}, nil
	}
	of, err := whole(t, t.args)
	return output{of}, err
}

// liquid reads a tag with one tag in each of its lines.
func (p *parser) liquid(t token) (node, error) {
	all, err := lines(t)
	if err != nil {
		return nil, err
	}
	if p.depth++; p.depth > maxNested {
		return nil, t.fault("blocks must not be nested deeper than %d levels", maxNested)
	}
	inner := parser{tokens: all, depth: p.depth, id: p.id}
	n, end, err := inner.until()
	p.depth, p.id = p.depth-1, inner.id
	if err == nil && end.name != "" {
		err = end.fault("%s ends no block", end.name)
	}
	return n, err
}

var assignment = regexp.MustCompile(`^\s*([A-Za-z_][A-Za-z0-9_-]*\??)\s*=((?s).*)$`)

// assign sets a variable.
type assign struct {
	name string
	of   expression
}

func (p *parser) assign(t token) (node, error) {
	found := assignment.FindStringSubmatch(t.args)
	if found == nil {
		return nil, t.fault("%s is not what assign wants: a name = a value", quoted(t.args))
	}
	if _, ok := reserved[found[1]]; ok {
		return nil, t.fault("%s is a word of the language, and no variable", found[1])
	}
	of, err := whole(t, found[2])
	return assign{found[1], of}, err
}

func (n assign) run(m *machine) error {
	v, err := m.need(n.of)
	if err == nil {
		m.vars[n.name] = v
	}
	return err
}

func (n assign) blank() bool { return true }

// capture sets a variable to the output of its body.
type capture struct {
	name string
	body body
}

func (p *parser) capture(t token) (node, error) {
	name := strings.Trim(strings.Trim(t.args, spaces), `'"`)
	all, ok := words(name)
	if _, word := reserved[name]; !ok || word || len(all) != 2 || all[0].kind != 'a' {
		return nil, t.fault("capture wants the name of a variable")
	}
	body, err := p.ended(t)
	return capture{name, body}, err
}

func (n capture) run(m *machine) error {
	text, err := m.captured(n.body)
	if err == nil {
		m.vars[n.name] = markup(text)
	}
	return err
}

func (n capture) blank() bool { return true }

// changed is an ifchanged: it writes the output of its body if it differs from the previous one.
type changed struct{ body body }

func (p *parser) changed(t token) (node, error) {
	body, err := p.ended(t)
	if err == nil {
		err = t.bare()
	}
	return changed{body}, err
}

func (n changed) run(m *machine) error {
	text, err := m.captured(n.body)
	if err != nil || text == m.last {
		return err
	}
	m.last = text
	return m.write(text)
}

func (n changed) blank() bool { return false }

// count is increment or decrement: a counter for each name, separate from the variables.
type count struct {
	name string
	down bool
}

func (p *parser) count(t token) (node, error) {
	all, ok := words(t.args)
	if !ok || len(all) != 2 || all[0].kind != 'a' {
		return nil, t.fault("%s wants the name of a counter", t.name)
	}
	return count{all[0].text, t.name == "decrement"}, nil
}

func (n count) run(m *machine) error {
	v := m.counters[n.name]
	if n.down {
		v--
		m.counters[n.name] = v
	} else {
		m.counters[n.name] = v + 1
	}
	return m.put(v)
}

func (n count) blank() bool { return false }

// cycle writes one value after another.
type cycle struct {
	group  expression // nil: cycles with the same values share their state
	values []expression
	text   string // as the template has it
}

func (p *parser) cycle(t token) (node, error) {
	r, err := readerOf(t, t.args)
	if err != nil {
		return nil, err
	}
	n := cycle{text: strings.Join(strings.Fields(t.args), " ")}
	first, err := r.value()
	if err != nil {
		return nil, err
	}
	more := true
	if r.is(':') {
		n.group = first
	} else {
		n.values, more = append(n.values, first), r.is(',')
	}
	for more && r.words[0].kind != 'e' {
		one, err := r.value()
		if err != nil {
			return nil, err
		}
		n.values, more = append(n.values, one), r.is(',')
	}
	if len(n.values) == 0 {
		return nil, r.fault()
	}
	return n, r.end()
}

func (n cycle) run(m *machine) error {
	key := "values " + n.text
	if n.group != nil {
		v, err := m.maybe(n.group) // a group may be a name without a variable
		if err != nil {
			return err
		}
		key = "group " + textOf(v)
	}
	if err := m.read(len(key)); err != nil {
		return err
	}
	next := m.cycles[key]
	if m.cycles[key] = next + 1; next+1 >= len(n.values) {
		m.cycles[key] = 0
	}
	if next >= len(n.values) {
		return nil
	}
	v, err := m.need(n.values[next])
	if err != nil {
		return err
	}
	return m.put(v)
}

func (n cycle) blank() bool { return false }

// leave is break or continue.
type leave struct{ err error }

func (n leave) run(*machine) error { return n.err }
func (n leave) blank() bool        { return false }

func leaveWith(err error) reads {
	return func(_ *parser, t token) (node, error) { return leave{err}, t.bare() }
}
