package liquid

import (
	"errors"
	"maps"
	"slices"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/values"
)

var (
	errBreak    = errors.New("break must stand in a for")
	errContinue = errors.New("continue must stand in a for")
)

// loop is for.
type loop struct {
	name          string
	of            expression
	limit, offset *expression
	reversed      bool
	body, empty   []node
}

func (c *compiler) loop(b *parser.ASTBlock) (node, error) {
	s, err := c.statement(b.Token, expressions.LoopStatementSelector, b.Args)
	if err != nil {
		return nil, err
	}
	if s.Loop.Cols != nil {
		return nil, at(b.Token, "for has no cols")
	}
	n := loop{name: s.Loop.Variable, of: expression{Expression: s.Loop.Expr, size: len(b.Args)}, reversed: s.Loop.Reversed}
	for _, bound := range []struct {
		of expressions.Expression
		to **expression
	}{{s.Loop.Limit, &n.limit}, {s.Loop.Offset, &n.offset}} {
		if bound.of != nil {
			*bound.to = &expression{Expression: bound.of, size: len(b.Args)}
		}
	}
	if n.body, err = c.all(b.Body); err != nil {
		return nil, err
	}
	for _, clause := range b.Clauses {
		if n.empty, err = c.all(clause.Body); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// items are what a loop goes through: so many, each of which at returns.
type items struct {
	n  int
	at func(i int) any
}

// itemsOf are those of a value. A map has pairs of names and values, by name.
func itemsOf(v any) items {
	switch v := v.(type) {
	case values.Range:
		return items{lengthOf(v), v.Index}
	case []any:
		return items{len(v), func(i int) any { return v[i] }}
	case []string:
		return items{len(v), func(i int) any { return v[i] }}
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		return items{len(v), func(i int) any { return []any{names[i], v[names[i]]} }}
	}
	return items{}
}

func (n loop) run(m *machine) error {
	v, err := m.value(n.of)
	if err != nil {
		return err
	}
	all := itemsOf(v)
	from, until := 0, all.n
	if n.offset != nil {
		if from, err = m.number(*n.offset, "offset"); err != nil {
			return err
		}
		from = min(max(from, 0), all.n)
	}
	if n.limit != nil {
		most, err := m.number(*n.limit, "limit")
		if err != nil {
			return err
		}
		until = min(until, from+max(0, min(most, all.n)))
	}
	if from >= until {
		return m.all(n.empty)
	}
	outer, shadowed, had := m.vars["forloop"], m.vars[n.name], m.captured[n.name]
	defer func() { m.vars["forloop"], m.vars[n.name], m.captured[n.name] = outer, shadowed, had }()
	length := until - from
	for i := range length {
		at := from + i
		if n.reversed {
			at = until - 1 - i
		}
		if err := m.step(5); err != nil {
			return err
		}
		m.set(n.name, all.at(at))
		m.vars["forloop"] = map[string]any{
			"first": i == 0, "last": i == length-1, "index": i + 1, "index0": i, "rindex": length - i, "rindex0": length - i - 1, "length": length,
		}
		switch err := m.all(n.body); err {
		case nil, errContinue:
		case errBreak:
			return nil
		default:
			return err
		}
	}
	return nil
}
