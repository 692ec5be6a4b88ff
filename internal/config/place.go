package config

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sendquota/sendquota/internal/invalid"
)

// source is where settings come from, the environment or the file, and
// gathers its faults.
type source struct {
	file   string // empty for the environment
	env    environment
	faults Errors
}

// place is where a setting stands, or would stand.
type place struct {
	in     *source
	key    string   // such as policy.rules[1].limit
	name   string   // the last part of the key
	line   int      // of the key, or of what it is missing from
	node   ast.Node // what stands here; nil: nothing
	preset bool     // the default stands here, and nobody wrote it
	hidden bool     // what stands here must not be shown
}

// given reports whether somebody wrote a value here.
func (p place) given() bool { return p.node != nil && !p.preset }

// standIn puts a default, written in YAML, where nothing stands.
func (p place) standIn(text string) place {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic(fmt.Sprintf("default of %s: %v", p.key, err)) // a table is wrong, which any test shows
	}
	p.node, p.preset = file.Docs[0].Body, true
	return p
}

// children are the entries of the mapping that stands here, in its order.
func (p place) children() []place {
	mapping, ok := p.node.(*ast.MappingNode)
	if !ok {
		return nil
	}
	var all []place
	for _, entry := range mapping.Values {
		c := p.entry(entry.Key.GetToken().Value)
		all = append(all, c.holding(entry.Value, entry.Key))
	}
	return all
}

// child is the entry of that name in the mapping that stands here. Where there
// is none, it is an empty place.
func (p place) child(name string) place {
	for _, c := range p.children() {
		if c.name == name {
			return c
		}
	}
	return p.entry(name)
}

// plainKey is a key that is readable as it is; others are shown in quotes.
var plainKey = regexp.MustCompile(`^[\w-]+$`)

// entry is the still empty place of a key of a mapping.
func (p place) entry(name string) place {
	shown := name
	if !plainKey.MatchString(name) {
		shown = strconv.Quote(name)
	}
	if p.key != "" {
		shown = p.key + "." + shown
	}
	p.key, p.name, p.node = shown, name, nil
	return p
}

// item is entry i of the list that stands here.
func (p place) item(i int) place {
	node := p.node.(*ast.SequenceNode).Values[i]
	p.key += "[" + strconv.Itoa(i) + "]"
	return p.holding(node, node)
}

// holding is the place with a node in it, and the line where that begins.
func (p place) holding(node, begin ast.Node) place {
	if !p.preset {
		p.line = lineOf(begin)
	}
	p.node = node
	return p
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// fault says what is wrong with the value that stands here.
func (p place) fault(format string, args ...any) {
	p.in.faults = append(p.in.faults, Error{p.in.file, p.line, invalid.FieldError{Field: p.key, Message: fmt.Sprintf(format, args...), Value: p.value()}})
}

// refuse says what is wrong with a key: that it is there, or that it is not.
// The value, which does not matter then, is left out.
func (p place) refuse(format string, args ...any) {
	p.in.faults = append(p.in.faults, Error{p.in.file, p.line, invalid.FieldError{Field: p.key, Message: fmt.Sprintf(format, args...)}})
}

// scheme is all of a hidden value that is shown.
var scheme = regexp.MustCompile(`^[a-z]{1,12}://`)

// value is what stands here as a message shows it.
func (p place) value() string {
	text, isText := textOf(p.node)
	switch p.node.(type) {
	case nil:
		return ""
	case *ast.AnchorNode:
		return "an anchor"
	case *ast.AliasNode:
		return "an alias"
	case *ast.TagNode:
		return "a tag"
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "null"
	}
	switch {
	case p.hidden && scheme.MatchString(text):
		return scheme.FindString(text) + "…"
	case p.hidden:
		return ""
	case isText:
		return fmt.Sprintf("%.80q", text)
	}
	return p.node.GetToken().Value
}

func textOf(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return n.Value.Value, true
	}
	return "", false
}
