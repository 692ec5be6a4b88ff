package liquid

import (
	"fmt"
	"slices"
	"strings"
)

// template is one template string.
type template struct{ body body }

// node is an executable piece of a template.
type node interface {
	run(m *machine) error

	// blank reports whether it writes nothing but spaces. A block of such nodes writes nothing.
	blank() bool
}

// body is the content of a template or of a block.
type body []node

func (b body) run(m *machine) error {
	for _, n := range b {
		if err := n.run(m); err != nil {
			return err
		}
	}
	return nil
}

func (b body) blank() bool {
	return !slices.ContainsFunc(b, func(n node) bool { return !n.blank() })
}

// silence drops the spaces of a blank body.
func (b *body) silence() {
	*b = slices.DeleteFunc(*b, func(n node) bool {
		_, text := n.(literal)
		return text
	})
}

// parser turns tokens into nodes.
type parser struct {
	tokens []token
	depth  int
	id     int // of the previous loop or cycle
}

// parse reads a template.
func parse(text string) (*template, error) {
	if len(text) > MaxTemplate {
		return nil, nil // reported for the whole message
	}
	tokens, err := scan(text)
	if err != nil {
		return nil, err
	}
	p := parser{tokens: tokens}
	all, end, err := p.until()
	if err != nil {
		return nil, err
	}
	if end.name != "" {
		return nil, end.fault("%s ends no block", end.name)
	}
	return &template{all}, nil
}

// reads is a function that reads a tag.
type reads func(*parser, token) (node, error)

// simple returns the reader of a tag that is no block; nil: there is no such tag.
func simple(name string) reads {
	return map[string]reads{
		"assign": (*parser).assign, "break": leaveWith(errBreak), "continue": leaveWith(errContinue), "cycle": (*parser).cycle,
		"decrement": (*parser).count, "echo": (*parser).echo, "increment": (*parser).count, "liquid": (*parser).liquid,
	}[name]
}

// block returns the reader of a tag that ends with end and its name; nil: there is no such tag.
func block(name string) reads {
	return map[string]reads{
		"capture": (*parser).capture, "case": (*parser).choice, "for": (*parser).loop, "if": (*parser).branches, "ifchanged": (*parser).changed,
		"tablerow": (*parser).rows, "unless": (*parser).branches,
	}[name]
}

// until reads up to one of the stop tags, or a tag that ends a block. It returns the nodes and that tag. At the end of
// the template, the tag has no name.
func (p *parser) until(stops ...string) (all body, end token, err error) {
	for len(p.tokens) > 0 {
		t := p.tokens[0]
		p.tokens = p.tokens[1:]
		if t.kind == tagToken && (slices.Contains(stops, t.name) || strings.HasPrefix(t.name, "end")) {
			return all, t, nil
		}
		n, err := p.node(t)
		if err != nil {
			return nil, t, err
		}
		all = append(all, n)
	}
	return all, token{}, nil
}

func (p *parser) node(t token) (node, error) {
	switch t.kind {
	case textToken:
		return literal(t.text), nil
	case rawToken:
		return raw(t.text), nil
	case outputToken:
		of, err := whole(t, t.args)
		return output{of}, err
	}
	if read := simple(t.name); read != nil {
		return read(p, t)
	}
	if read := block(t.name); read != nil {
		return p.block(t, read)
	}
	switch t.name {
	case "include", "render":
		return nil, t.fault("%s is not supported: a message has no other templates", t.name)
	case "else", "elsif", "when":
		return nil, t.fault("%s is outside of its block", t.name)
	}
	return nil, t.fault("there is no tag %s", short(t.name))
}

// block reads a block up to its end.
func (p *parser) block(t token, read reads) (node, error) {
	if p.depth++; p.depth > maxNested {
		return nil, fmt.Errorf("blocks must not be nested deeper than %d levels", maxNested)
	}
	defer func() { p.depth-- }()
	return read(p, t)
}

// ended reads the rest of a block without parts.
func (p *parser) ended(t token) (body, error) {
	all, end, err := p.until()
	if err == nil {
		err = ends(t, end)
	}
	return all, err
}

// ends checks that a tag ends a block.
func ends(t, end token) error {
	switch {
	case end.name == "":
		return t.fault("%s has no end%s", t.name, t.name)
	case end.name != "end"+t.name:
		return end.fault("%s does not end %s, which began in line %d", end.name, t.name, t.line)
	}
	return nil
}

// bare checks that a tag has no arguments.
func (t token) bare() error {
	if text := strings.Trim(t.args, spaces); text != "" {
		return t.fault("%s takes nothing, and not %s", t.name, quoted(text))
	}
	return nil
}
