package liquid

import (
	"fmt"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/values"
)

// literal is text as it stands.
type literal string

func (n literal) run(m *machine) error { return m.write(string(n)) }

// output writes a value.
type output struct {
	expression
	name string // of the variable that it is, and nothing else; "": it is something else
	safe bool   // the last filter has escaped it, or the template says that it need not be
}

func (c *compiler) output(t parser.Token) (node, error) {
	e, err := c.expression(t, t.Args)
	n := output{expression: e}
	if found := bareName.FindStringSubmatch(t.Args); found != nil {
		n.name = found[1]
	}
	for _, w := range words(t.Args) {
		if w.filter {
			n.safe = safe[w.text]
		}
	}
	return n, err
}

func (n output) run(m *machine) error {
	v, err := m.value(n.expression)
	if err != nil {
		return err
	}
	if v == nil && n.path != "" {
		return unknown(n.path)
	}
	return m.put(v, m.html && !n.safe && !m.captured[n.name])
}

// tag reads one that is no block.
func (c *compiler) tag(t parser.Token) (node, error) {
	switch t.Name {
	case "assign":
		s, err := c.statement(t, expressions.AssignStatementSelector, t.Args)
		if err != nil {
			return nil, err
		}
		return assign{s.Assignment.Variable, expression{Expression: s.Assignment.ValueFn, size: len(t.Args)}}, nil
	case "cycle":
		s, err := c.statement(t, expressions.CycleStatementSelector, t.Args)
		if err != nil {
			return nil, err
		}
		group := s.Cycle.Group
		if group == "" {
			group = fmt.Sprintf("%q", s.Cycle.Values)
		}
		return cycle{group, s.Cycle.Values}, nil
	case "break":
		return leave{errBreak}, nil
	case "continue":
		return leave{errContinue}, nil
	case "include", "render":
		return nil, at(t, "%s is not supported: a message has no other templates", t.Name)
	}
	return nil, at(t, "there is no tag %s", short(t.Name))
}

// assign sets a variable.
type assign struct {
	name string
	expression
}

func (n assign) run(m *machine) error {
	v, err := m.value(n.expression)
	if err == nil {
		m.set(n.name, v)
	}
	return err
}

// cycle writes one text after another.
type cycle struct {
	group string
	texts []string
}

func (n cycle) run(m *machine) error {
	if err := m.step(1); err != nil {
		return err
	}
	turn := m.cycles[n.group]
	m.cycles[n.group] = turn + 1
	return m.write(n.texts[turn%len(n.texts)])
}

// leave goes on behind the loop that it is in, or with its next turn.
type leave struct{ err error }

func (n leave) run(*machine) error { return n.err }

// block reads one.
func (c *compiler) block(b *parser.ASTBlock) (node, error) {
	switch b.Name {
	case "capture":
		found := bareName.FindStringSubmatch(b.Args)
		if found == nil {
			return nil, at(b.Token, "capture wants the name of a variable")
		}
		body, err := c.all(b.Body)
		c.names[found[1]] = true
		return capture{found[1], body}, err
	case "case":
		return c.choice(b)
	case "for":
		return c.loop(b)
	case "if", "unless":
		return c.branches(b)
	}
	return nil, at(b.Token, "there is no tag %s", short(b.Name))
}

// capture sets a variable to what its body writes.
type capture struct {
	name string
	body []node
}

func (n capture) run(m *machine) error {
	outer := m.out
	m.out = nil
	err := m.all(n.body)
	text := string(m.out)
	m.out = outer
	if err != nil {
		return err
	}
	m.set(n.name, text)
	m.captured[n.name] = true
	return nil
}

// choice is case: the first body of which one value is equal, or that has none.
type choice struct {
	expression
	values [][]expression
	bodies [][]node
}

func (c *compiler) choice(b *parser.ASTBlock) (node, error) {
	e, err := c.expression(b.Token, b.Args)
	n := choice{expression: e}
	for _, clause := range b.Clauses {
		if err != nil {
			return nil, err
		}
		var (
			of   []expression
			body []node
			s    *expressions.Statement
		)
		if clause.Name == "when" {
			if s, err = c.statement(clause.Token, expressions.WhenStatementSelector, clause.Args); err != nil {
				return nil, err
			}
			for _, one := range s.When.Exprs {
				of = append(of, expression{Expression: one, size: len(clause.Args)})
			}
		}
		body, err = c.all(clause.Body)
		n.values, n.bodies = append(n.values, of), append(n.bodies, body)
	}
	return n, err
}

func (n choice) run(m *machine) error {
	v, err := m.value(n.expression)
	if err != nil {
		return err
	}
	for i, of := range n.values {
		if of == nil {
			return m.all(n.bodies[i])
		}
		for _, one := range of {
			w, err := m.value(one)
			if err != nil {
				return err
			}
			if values.Equal(v, w) {
				return m.all(n.bodies[i])
			}
		}
	}
	return nil
}

// branches is if or unless: the first body whose condition holds.
type branches []branch

type branch struct {
	expression
	tests []test // as long as they are joined by and and or, from the left; none: it holds
	not   bool
	body  []node
}

// test is a part of a condition.
type test struct {
	expression
	asks bool // whether there is a variable
	or   bool // how it is joined to what stands before it
}

func (c *compiler) branches(b *parser.ASTBlock) (node, error) {
	all := branches{}
	for i, clause := range append([]*parser.ASTBlock{b}, b.Clauses...) {
		one := branch{not: i == 0 && b.Name == "unless"}
		if clause.Name != "else" {
			texts, joins := operands(clause.Args)
			for i, text := range texts {
				e, err := c.expression(clause.Token, text)
				if err != nil {
					return nil, err
				}
				one.tests = append(one.tests, test{e, barePath.MatchString(text), i > 0 && joins[i-1] == "or"})
			}
		}
		var err error
		if one.body, err = c.all(clause.Body); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

func (n branches) run(m *machine) error {
	for _, b := range n {
		holds := true
		for i, t := range b.tests {
			if i > 0 && t.or == holds {
				continue // it is decided
			}
			v, err := m.tested(t)
			if err != nil {
				return err
			}
			holds = v != nil && v != false
		}
		if holds != b.not {
			return m.all(b.body)
		}
	}
	return nil
}
