package liquid

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"github.com/osteele/liquid/expressions"
	"github.com/osteele/liquid/parser"
	"github.com/osteele/liquid/render"
)

// template is one string.
type template struct {
	body  []node
	names []string // that may be those of variables
}

// node is a piece of a template that does something.
type node interface {
	run(m *machine) error
}

// grammar are the blocks that there are.
var grammar = func() render.Config {
	c := render.NewConfig()
	c.AddBlock("capture")
	c.AddBlock("case").Clause("when").Clause("else")
	c.AddBlock("comment")
	c.AddBlock("for").Clause("else")
	c.AddBlock("if").Clause("else").Clause("elsif")
	c.AddBlock("raw")
	c.AddBlock("unless").Clause("else").Clause("elsif")
	return c
}()

// maxNested is how deep blocks may stand in each other, and brackets in an expression.
const maxNested = 100

// compiler turns what the parser has read into nodes.
type compiler struct {
	names map[string]bool
	depth int
}

// parse reads a template.
func parse(text string) (t *template, err error) {
	defer func() { // the parser of expressions panics at a number that is too large
		if p := recover(); p != nil {
			t, err = nil, errors.New("it can not be read")
		}
	}()
	if len(text) > MaxTemplate {
		return nil, nil // that is told of the whole message
	}
	if err := checkMarks(text); err != nil {
		return nil, err
	}
	root, wrong := grammar.Parse(text, parser.SourceLoc{LineNo: 1})
	if wrong != nil {
		return nil, plainly(wrong)
	}
	c := compiler{names: map[string]bool{}}
	t = &template{}
	if t.body, err = c.all(root.(*parser.ASTSeq).Children); err != nil {
		return nil, err
	}
	for name := range c.names {
		t.names = append(t.names, name)
	}
	return t, nil
}

var liquidError = regexp.MustCompile(`(?s)^Liquid error(?: \((.*?)\))?: (.*)$`)

// plainly is what the parser says, in our form.
func plainly(wrong parser.Error) error {
	text := wrong.Error()
	if found := liquidError.FindStringSubmatch(text); found != nil {
		text = strings.TrimPrefix(found[1]+": ", ": ") + found[2]
	}
	return errors.New(quoted(text))
}

// at is a fault of a tag or an output.
func at(t parser.Token, format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{t.SourceLoc.LineNo}, args...)...)
}

func (c *compiler) all(from []parser.ASTNode) (all []node, err error) {
	if c.depth++; c.depth > maxNested {
		return nil, fmt.Errorf("blocks must not be nested deeper than %d levels", maxNested)
	}
	defer func() { c.depth-- }()
	trim := false
	for i, one := range from {
		var n node
		switch one := one.(type) {
		case *parser.ASTText:
			text := one.Source
			if trim {
				text = strings.TrimLeftFunc(text, unicode.IsSpace)
			}
			if i+1 < len(from) {
				if next, ok := from[i+1].(*parser.ASTTrim); ok && next.TrimDirection == parser.Left {
					text = strings.TrimRightFunc(text, unicode.IsSpace)
				}
			}
			n = literal(text)
		case *parser.ASTTrim:
			trim = one.TrimDirection == parser.Right
			continue
		case *parser.ASTRaw:
			n = literal(strings.Join(one.Slices, ""))
		case *parser.ASTObject:
			n, err = c.output(one.Token)
		case *parser.ASTTag:
			n, err = c.tag(one.Token)
		case *parser.ASTBlock:
			n, err = c.block(one)
		}
		if err != nil {
			return nil, err
		}
		all, trim = append(all, n), false
	}
	return all, nil
}

// expression is one that is evaluated.
type expression struct {
	expressions.Expression
	path string // that it begins with, of a part of a variable; "": with something else
	size int    // of its text: it may compare once in some bytes
}

// expression reads the expression of a tag or an output, and notes the names in it.
func (c *compiler) expression(t parser.Token, text string) (e expression, err error) {
	if err := c.note(t, text); err != nil {
		return e, err
	}
	if e.Expression, err = expressions.Parse(text); err != nil {
		return e, at(t, "%s is not an expression", quoted(text))
	}
	e.size = len(text)
	if found := longPath.FindStringSubmatch(text); found != nil {
		e.path = found[1]
	}
	return e, nil
}

// statement reads the arguments of a tag that are more than an expression.
func (c *compiler) statement(t parser.Token, kind, text string) (*expressions.Statement, error) {
	if err := c.note(t, text); err != nil {
		return nil, err
	}
	s, err := expressions.ParseStatement(kind, text)
	if err != nil {
		return nil, at(t, "%s is not what %s wants", cmp.Or(quoted(text), "nothing"), t.Name)
	}
	return s, nil
}

// note keeps the names in an expression, and refuses filters that there are not.
func (c *compiler) note(t parser.Token, text string) error {
	if strings.Count(text, "(") > maxNested || strings.Count(text, "[") > maxNested {
		return at(t, "there are more than %d brackets in an expression", maxNested)
	}
	for _, w := range words(text) {
		if _, known := filters[w.text]; w.filter && !known {
			return at(t, "there is no filter %s", short(w.text))
		}
		if !w.filter {
			c.names[w.text] = true
		}
	}
	return nil
}
