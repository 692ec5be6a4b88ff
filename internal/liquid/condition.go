package liquid

import (
	"fmt"
	"strings"
)

// condition is the condition of an if: comparisons joined by and and or, which bind from the right.
type condition struct {
	left, right expression // right is nil: the left one must be truthy
	operator    string
	join        string     // "and", "or"
	rest        *condition // after the join; nil: none
}

// conditionOf reads a condition.
func conditionOf(t token) (*condition, error) {
	r, err := readerOf(t, t.args)
	if err != nil {
		return nil, err
	}
	var first condition
	for at := &first; ; at = at.rest {
		if at.left, err = r.value(); err != nil {
			return nil, err
		}
		if w := r.words[0]; r.is('=') {
			at.operator = w.text
			if at.right, err = r.value(); err != nil {
				return nil, err
			}
		}
		w := r.words[0]
		if !r.isName("and") && !r.isName("or") {
			return &first, r.end()
		}
		at.join, at.rest = w.text, &condition{}
	}
}

// holds reports whether a condition is true. It stops as soon as the result is known.
func (c *condition) holds(m *machine) (bool, error) {
	for ; ; c = c.rest {
		holds, err := c.one(m)
		if err != nil || c.rest == nil || holds == (c.join == "or") {
			return holds, err
		}
	}
}

// one evaluates the first comparison of a condition.
func (c *condition) one(m *machine) (bool, error) {
	read := m.need
	if c.right == nil || asksNothing(c.right) {
		read = m.maybe
	}
	left, err := read(c.left)
	if err != nil || c.right == nil {
		return truthy(left), err
	}
	if read = m.need; asksNothing(c.left) {
		read = m.maybe
	}
	right, err := read(c.right)
	if err != nil {
		return false, err
	}
	if err := m.read(min(bytesOf(left), bytesOf(right))); err != nil {
		return false, err
	}
	switch c.operator {
	case "==", "!=", "<>":
		same, err := m.same(left, right, !isText(c.left) && !isText(c.right))
		return same == (c.operator == "=="), err
	case "contains":
		return m.contains(left, right)
	}
	order, comparable, err := compared(left, right)
	if err != nil {
		return false, fmt.Errorf("%s %s %s: %w", short(sourceOf(c.left)), c.operator, short(sourceOf(c.right)), err)
	}
	if !comparable {
		return false, nil
	}
	return order < 0 && strings.HasPrefix(c.operator, "<") || order > 0 && strings.HasPrefix(c.operator, ">") || order == 0 && strings.HasSuffix(c.operator, "="), nil
}

// branches is an if or unless: it renders the first body with a true condition.
type branches []branch

type branch struct {
	when *condition // nil: always true
	not  bool
	body body
}

func (n branches) run(m *machine) error {
	for _, b := range n {
		holds := true
		if b.when != nil {
			var err error
			if holds, err = b.when.holds(m); err != nil {
				return err
			}
		}
		if holds != b.not {
			return b.body.run(m)
		}
	}
	return nil
}

func (n branches) blank() bool {
	for _, b := range n {
		if !b.body.blank() {
			return false
		}
	}
	return true
}

func (p *parser) branches(t token) (node, error) {
	var n branches
	begin, not := t, t.name == "unless"
	for {
		b := branch{not: not}
		not = false
		var err error
		if t.name != "else" {
			if b.when, err = conditionOf(t); err != nil {
				return nil, err
			}
		} else if err := t.bare(); err != nil {
			return nil, err
		}
		if b.body, t, err = p.until("elsif", "else"); err != nil {
			return nil, err
		}
		if n = append(n, b); t.name != "elsif" && t.name != "else" {
			break
		}
	}
	if err := ends(begin, t); err != nil {
		return nil, err
	}
	if n.blank() {
		for i := range n {
			n[i].body.silence()
		}
	}
	return n, nil
}

// choice is a case: it renders every when that matches the value, or else the else.
type choice struct {
	of      expression
	clauses []clause
}

// clause is a when of a case, or an else.
type clause struct {
	values []expression // none: else
	body   body
}

func (p *parser) choice(t token) (node, error) {
	var (
		n     choice
		err   error
		begin = t
	)
	if n.of, err = whole(t, t.args); err != nil {
		return nil, err
	}
	_, t, err = p.until("when", "else") // text before the first when is dropped
	for err == nil && (t.name == "when" || t.name == "else") {
		var c clause
		if t.name == "when" {
			c.values, err = whenOf(t)
		} else {
			err = t.bare()
		}
		if err != nil {
			break
		}
		c.body, t, err = p.until("when", "else")
		n.clauses = append(n.clauses, c)
	}
	if err == nil {
		err = ends(begin, t)
	}
	if err != nil {
		return nil, err
	}
	if n.blank() {
		for i := range n.clauses {
			n.clauses[i].body.silence()
		}
	}
	return n, nil
}

// whenOf returns the values of a when.
func whenOf(t token) (all []expression, err error) {
	r, err := readerOf(t, t.args)
	for more := true; err == nil && more; more = r.is(',') || r.isName("or") {
		var one expression
		if one, err = r.value(); err == nil {
			all = append(all, one)
		}
	}
	if err == nil {
		err = r.end()
	}
	return all, err
}

func (n choice) blank() bool {
	for _, c := range n.clauses {
		if !c.body.blank() {
			return false
		}
	}
	return true
}

func (n choice) run(m *machine) error {
	v, err := m.need(n.of)
	if err != nil {
		return err
	}
	found := false
	for _, c := range n.clauses {
		if c.values == nil && !found {
			if err := c.body.run(m); err != nil {
				return err
			}
		}
		for _, one := range c.values {
			w, err := m.need(one)
			if err != nil {
				return err
			}
			if err := m.read(min(bytesOf(v), bytesOf(w))); err != nil {
				return err
			}
			same, err := m.same(v, w, !isText(n.of) && !isText(one))
			if err != nil {
				return err
			}
			if !same {
				continue
			}
			found = true
			if err := c.body.run(m); err != nil {
				return err
			}
		}
	}
	return nil
}
