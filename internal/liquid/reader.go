package liquid

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// reader reads the words of an expression.
type reader struct {
	words []word
	token token // the token of the words
	text  string
	depth int
}

// maxNested is the maximum nesting of blocks, and of brackets in an expression.
const maxNested = 100

func readerOf(t token, text string) (*reader, error) {
	all, ok := words(text)
	r := &reader{words: all, token: t, text: text}
	if !ok {
		return nil, r.fault()
	}
	return r, nil
}

// fault returns the error for an expression that cannot be read.
func (r *reader) fault() error {
	return r.token.fault("%s is not an expression", cmp.Or(quoted(r.text), "nothing"))
}

func (r *reader) next() word {
	w := r.words[0]
	if w.kind != 'e' {
		r.words = r.words[1:]
	}
	return w
}

// is consumes the next word if it is of a kind, and reports whether it was.
func (r *reader) is(kind byte) bool {
	if r.words[0].kind != kind {
		return false
	}
	r.next()
	return true
}

// isName is is for one name.
func (r *reader) isName(name string) bool {
	return r.words[0].text == name && r.is('a')
}

// end returns an error if words are left.
func (r *reader) end() error {
	if r.words[0].kind != 'e' {
		return r.fault()
	}
	return nil
}

// whole reads an expression with its filters, up to the end.
func whole(t token, text string) (expression, error) {
	r, err := readerOf(t, text)
	if err != nil {
		return nil, err
	}
	e, err := r.filtered()
	if err == nil {
		err = r.end()
	}
	return e, err
}

func (r *reader) filtered() (expression, error) {
	of, err := r.value()
	if err != nil || r.words[0].kind != '|' {
		return of, err
	}
	e := filtered{of: of}
	for r.is('|') {
		c, err := r.call()
		if err != nil {
			return nil, err
		}
		e.calls = append(e.calls, c)
	}
	return e, nil
}

func (r *reader) call() (c call, err error) {
	w := r.next()
	if w.kind != 'a' {
		return c, r.fault()
	}
	known, ok := filters[w.text]
	if !ok {
		return c, r.token.fault("there is no filter %s", short(w.text))
	}
	c = call{name: w.text, filter: known}
	for more := r.is(':'); more; more = r.is(',') {
		if r.words[0].kind == 'a' && r.words[1].kind == ':' {
			name := r.next().text
			r.next()
			if c.named == nil {
				c.named = map[string]expression{}
			}
			if c.named[name], err = r.value(); err != nil {
				return c, err
			}
			continue
		}
		arg, err := r.value()
		if err != nil {
			return c, err
		}
		c.args = append(c.args, arg)
	}
	for name := range c.named {
		if !strings.Contains(known.named, name) {
			return c, r.token.fault("the filter %s has no argument %s", c.name, short(name))
		}
	}
	if n := len(c.args); n < known.least || n > known.most {
		return c, r.token.fault("the filter %s takes %s, not %d", c.name, known.arguments(), n)
	}
	return c, nil
}

// value reads an expression without filters.
func (r *reader) value() (expression, error) {
	if r.depth++; r.depth > maxNested {
		return nil, r.token.fault("there are more than %d brackets in an expression", maxNested)
	}
	defer func() { r.depth-- }()
	switch w := r.next(); w.kind {
	case '0':
		v, err := literalNumber(w.text)
		if err != nil {
			return nil, r.token.fault("%s", err)
		}
		return constant{v}, nil
	case '"':
		return constant{w.text}, nil
	case '(':
		return r.bounds()
	case 'a':
		if v, ok := reserved[w.text]; ok && r.words[0].kind != '.' && r.words[0].kind != '[' {
			return constant{v}, nil
		}
		return r.path(path{root: w.text, text: w.text})
	case '[':
		index, err := r.index()
		if err != nil {
			return nil, err
		}
		p := path{steps: []step{{index: index}}, text: "[…]"}
		if name, ok := index.(constant); ok {
			p.text = textOf(name.value)
		}
		return r.path(p)
	}
	return nil, r.fault()
}

// reserved lists the names with a fixed value.
var reserved = map[string]any{"nil": nil, "null": nil, "true": true, "false": false, "blank": blank, "empty": empty}

func (r *reader) bounds() (expression, error) {
	from, err := r.value()
	if err != nil {
		return nil, err
	}
	if !r.is('~') {
		return nil, r.fault()
	}
	to, err := r.value()
	if err == nil && !r.is(')') {
		err = r.fault()
	}
	return bounds{from, to}, err
}

func (r *reader) index() (expression, error) {
	e, err := r.value()
	if err == nil && !r.is(']') {
		err = r.fault()
	}
	return e, err
}

// path reads the parts of a variable.
func (r *reader) path(p path) (expression, error) {
	for {
		switch {
		case r.is('.'):
			w := r.next()
			if w.kind != 'a' && w.text != "contains" {
				return nil, r.fault()
			}
			p.steps = append(p.steps, step{name: w.text})
			p.extend("." + w.text)
		case r.is('['):
			index, err := r.index()
			if err != nil {
				return nil, err
			}
			p.steps = append(p.steps, step{index: index})
			p.extend(inBrackets(index))
		default:
			return p, nil
		}
	}
}

// maxPath bounds the text of a path, which is only used in errors.
const maxPath = 1000

func (p *path) extend(text string) {
	if len(p.text) < maxPath {
		p.text += text
	}
}

// inBrackets returns the text of an index for an error.
func inBrackets(e expression) string {
	switch e := e.(type) {
	case constant:
		if isText(e) {
			return fmt.Sprintf("['%s']", e.value)
		}
		return fmt.Sprintf("[%v]", e.value)
	case path:
		return "[" + e.text + "]"
	}
	return "[…]"
}

func literalNumber(text string) (any, error) {
	if !strings.Contains(text, ".") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("the number %s is too large", short(text))
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %s is too large", short(text))
	}
	return f, nil
}
