package liquid

import (
	"errors"
)

var (
	errBreak    = errors.New("break must stand in a for")
	errContinue = errors.New("continue must stand in a for")
)

// loopItems is the common part of for and tablerow: the items of the loop, and its options.
type loopItems struct {
	name                string
	of                  expression
	limit, offset, cols expression
	resumed             bool // offset: continue
	reversed            bool
	text                string // for forloop.name
}

// loopArguments reads the arguments of a loop.
func loopArguments(t token) (n loopItems, err error) {
	r, err := readerOf(t, t.args)
	if err != nil {
		return n, err
	}
	name := r.next()
	if name.kind != 'a' || !r.isName("in") {
		return n, t.fault("%s is not what %s wants: a name in a list", quoted(t.args), t.name)
	}
	n.name = name.text
	if n.of, err = r.value(); err != nil {
		return n, err
	}
	n.text = n.name + "-" + sourceOf(n.of)
	for r.words[0].kind != 'e' {
		switch w := r.next(); {
		case w.kind == ',':
		case w.text == "reversed" && t.name == "for":
			n.reversed = true
		case w.kind == 'a' && r.is(':'):
			if err := n.option(r, w.text); err != nil {
				return n, err
			}
		default:
			return n, r.fault()
		}
	}
	return n, nil
}

// option reads limit, offset, or cols.
func (n *loopItems) option(r *reader, name string) (err error) {
	if name == "offset" && r.isName("continue") {
		n.resumed = true
		return nil
	}
	to := map[string]*expression{"limit": &n.limit, "offset": &n.offset}[name]
	if name == "cols" && r.token.name == "tablerow" {
		to = &n.cols
	}
	if to == nil {
		return r.token.fault("%s has no %s", r.token.name, short(name))
	}
	*to, err = r.value()
	return err
}

// sourceOf returns the source text of an expression.
func sourceOf(e expression) string {
	switch e := e.(type) {
	case path:
		return e.text
	case bounds:
		return "(" + sourceOf(e.from) + ".." + sourceOf(e.to) + ")"
	case constant:
		return textOf(e.value)
	}
	return ""
}

// items are the items of a loop: their number, and a function that returns each.
type items struct {
	n  int
	at func(i int) any
}

// itemsOf returns the items of a value. The items of an object are pairs of names and values; a text that is not empty
// is one item.
func itemsOf(v any) items {
	switch v := v.(type) {
	case span:
		return items{v.len(), func(i int) any { return v.from + i }}
	case []any:
		return items{len(v), func(i int) any { return v[i] }}
	case *object:
		return items{len(v.names), func(i int) any { return []any{v.names[i], v.values[v.names[i]]} }}
	case string, markup:
		if textOf(v) != "" {
			return items{1, func(int) any { return v }}
		}
	}
	return items{}
}

// slice returns the items that the loop visits.
func (n *loopItems) slice(m *machine) (items, error) {
	v, err := m.need(n.of)
	if err != nil {
		return items{}, err
	}
	all := itemsOf(v)
	from, most := 0, all.n
	if n.resumed {
		from = m.offsets[n.text]
	} else if n.offset != nil {
		if from, err = m.wholeOf(n.offset, "the offset of a loop"); err != nil {
			return items{}, err
		}
	}
	if n.limit != nil {
		if most, err = m.wholeOf(n.limit, "the limit of a loop"); err != nil {
			return items{}, err
		}
	}
	from = min(max(from, 0), all.n)
	length := max(0, min(most, all.n-from))
	m.offsets[n.text] = from + length
	at := all.at
	return items{length, func(i int) any {
		if n.reversed {
			i = length - 1 - i
		}
		return at(from + i)
	}}, nil
}

// once runs the body of a loop for one item. It returns errBreak if the loop must end.
func (n *loopItems) once(m *machine, item any, b body) error {
	if err := m.step(5); err != nil {
		return err
	}
	m.vars[n.name] = item
	err := b.run(m)
	if errors.Is(err, errContinue) {
		return nil
	}
	return err
}

// keep returns a function that restores the current values of variables.
func (m *machine) keep(names ...string) func() {
	values, had := make([]any, len(names)), make([]bool, len(names))
	for i, name := range names {
		values[i], had[i] = m.vars[name]
	}
	return func() {
		for i, name := range names {
			if had[i] {
				m.vars[name] = values[i]
			} else {
				delete(m.vars, name)
			}
		}
	}
}

// loop is for.
type loop struct {
	loopItems
	body, empty body
}

func (p *parser) loop(t token) (node, error) {
	all, err := loopArguments(t)
	if err != nil {
		return nil, err
	}
	n := loop{loopItems: all}
	var end token
	if n.body, end, err = p.until("else"); err == nil && end.name == "else" {
		if err = end.bare(); err == nil {
			n.empty, end, err = p.until()
		}
	}
	if err == nil {
		err = ends(t, end)
	}
	if n.blank() {
		n.body.silence()
		n.empty.silence()
	}
	return n, err
}

func (n loop) blank() bool { return n.body.blank() && n.empty.blank() }

func (n loop) run(m *machine) error {
	all, err := n.slice(m)
	if err != nil {
		return err
	}
	if all.n == 0 {
		return n.empty.run(m)
	}
	defer m.keep("forloop", n.name)()
	at := &position{name: n.text, length: all.n}
	at.parent, _ = m.vars["forloop"].(*position)
	m.vars["forloop"] = at
	for at.index = range all.n {
		switch err := n.once(m, all.at(at.index), n.body); {
		case errors.Is(err, errBreak):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// position is forloop or tablerowloop: the position in a loop.
type position struct {
	name          string
	index, length int
	parent        *position // nil: the loop is not nested
	cols          int       // per row of a tablerow; 0: a for
}

// part returns one of its members.
func (p *position) part(name string) (any, bool) {
	switch name {
	case "first":
		return p.index == 0, true
	case "last":
		return p.index == p.length-1, true
	case "index":
		return p.index + 1, true
	case "index0":
		return p.index, true
	case "rindex":
		return p.length - p.index, true
	case "rindex0":
		return p.length - p.index - 1, true
	case "length":
		return p.length, true
	}
	if p.cols == 0 {
		switch name {
		case "name":
			return p.name, true
		case "parentloop":
			if p.parent != nil {
				return p.parent, true
			}
		}
		return nil, false
	}
	switch name {
	case "col":
		return p.index%p.cols + 1, true
	case "col0":
		return p.index % p.cols, true
	case "col_first":
		return p.index%p.cols == 0, true
	case "col_last":
		return p.index%p.cols == p.cols-1 || p.index == p.length-1 && p.cols == p.length, true
	case "row":
		return p.index/p.cols + 1, true
	}
	return nil, false
}
