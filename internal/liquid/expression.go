package liquid

// expression is something with a value.
type expression interface {
	eval(m *machine) (any, error)
}

// constant is a literal value in the template.
type constant struct{ value any }

func (e constant) eval(*machine) (any, error) { return e.value, nil }

// isText reports whether an expression is a literal text.
func isText(e expression) bool {
	c, ok := e.(constant)
	_, text := c.value.(string)
	return ok && text
}

// asksNothing reports whether an expression is nil, blank or empty.
func asksNothing(e expression) bool {
	c, ok := e.(constant)
	if _, special := c.value.(special); special || c.value == nil {
		return ok
	}
	return false
}

// path is a variable, or a part of one.
type path struct {
	root  string // "": the first step is the name of the variable
	steps []step // from the variable downwards
	text  string // as the template has it
}

// step is a part of a value: a name after a dot, or an index in brackets.
type step struct {
	name  string
	index expression
}

func (e path) eval(m *machine) (any, error) {
	if err := m.step(1 + len(e.steps)); err != nil {
		return nil, err
	}
	steps, name := e.steps, e.root
	if name == "" {
		v, err := m.need(steps[0].index)
		if err != nil {
			return nil, err
		}
		name, steps = textOf(v), steps[1:]
	}
	v, err := m.variable(name)
	for i := 0; i < len(steps) && err == nil; i++ {
		if _, missing := v.(unknown); missing {
			break
		}
		var key any = steps[i].name
		if steps[i].index != nil {
			if key, err = m.need(steps[i].index); err != nil {
				return nil, err
			}
		}
		if v, err = m.part(v, key, e.text); err != nil {
			return nil, err
		}
	}
	return v, err
}

// bounds is a range (from..to).
type bounds struct{ from, to expression }

func (e bounds) eval(m *machine) (any, error) {
	from, err := m.wholeOf(e.from, "the beginning of a range")
	if err != nil {
		return nil, err
	}
	to, err := m.wholeOf(e.to, "the end of a range")
	return span{from, to}, err
}

// filtered is an expression with filters.
type filtered struct {
	of    expression
	calls []call
}

// call is a filter with its arguments.
type call struct {
	name   string
	filter filter
	args   []expression
	named  map[string]expression
}

func (e filtered) eval(m *machine) (any, error) {
	v, err := e.of.eval(m)
	for i := 0; i < len(e.calls) && err == nil; i++ {
		v, err = e.calls[i].apply(m, v, e.of)
	}
	return v, err
}
