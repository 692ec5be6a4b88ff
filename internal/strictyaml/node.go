package strictyaml

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Node is a setting in a file or an environment, whether it has a value or not.
type Node struct {
	in     *source
	key    string   // such as policy.rules[1].limit
	name   string   // the last part of the key
	line   int      // of the key, or of the mapping that lacks it
	node   ast.Node // the value; nil: none
	preset bool     // the value is the default
	hidden bool     // the value must not be shown
}

// Given reports whether the place has a written value. A default is not given.
func (p Node) Given() bool { return p.node != nil && !p.preset }

// standIn sets the value to a default, written in YAML.
func (p Node) standIn(text string) Node {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic(fmt.Sprintf("default of %s: %v", p.key, err)) // an error in a table; any test shows it
	}
	p.node, p.preset = file.Docs[0].Body, true
	return p
}

// children returns the entries of the mapping at this place, in its order.
func (p Node) children() []Node {
	mapping, ok := p.node.(*ast.MappingNode)
	if !ok {
		return nil
	}
	var all []Node
	for _, entry := range mapping.Values {
		c := p.entry(entry.Key.GetToken().Value)
		all = append(all, c.holding(entry.Value, entry.Key))
	}
	return all
}

// Child returns the entry with a name in the mapping at this place, or an empty place if there is none.
func (p Node) Child(name string) Node {
	for _, c := range p.children() {
		if c.name == name {
			return c
		}
	}
	return p.entry(name)
}

// plainKey matches a key that errors show without quotes.
var plainKey = regexp.MustCompile(`^[\w-]+$`)

// entry returns an empty place for a key of the mapping.
func (p Node) entry(name string) Node {
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

// Item returns entry i of the list at this place.
func (p Node) Item(i int) Node {
	node := p.node.(*ast.SequenceNode).Values[i]
	p.key += "[" + strconv.Itoa(i) + "]"
	return p.holding(node, node)
}

// holding returns the place with a node as its value, and the line where that begins.
func (p Node) holding(node, begin ast.Node) Node {
	if !p.preset {
		p.line = lineOf(begin)
	}
	p.node = node
	return p
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// isMapping reports whether the value is a mapping. It adds errors for another value, and for duplicate keys.
func (p Node) isMapping(shape string) bool {
	if _, ok := p.node.(*ast.MappingNode); !ok {
		kind, hint := "a mapping", ""
		if _, null := p.node.(*ast.NullNode); null {
			hint = "; leave the key out for the default"
		}
		if p.in.object {
			kind, hint = "an object", ""
		}
		p.hidden = true // the value may be a URL or a secret in the place of its channel
		p.BadValue("must be %s %s%s", kind, shape, hint)
		return false
	}
	lines := map[string]int{}
	for _, c := range p.children() {
		if first, twice := lines[c.name]; twice {
			if p.in.object {
				c.BadKey("is written twice")
				continue
			}
			c.BadKey("is written twice, first in line %d", first)
			continue
		}
		lines[c.name] = c.line
	}
	return true
}

// BadValue adds an error about the value at this place, and shows the value unless it may hold a secret.
func (p Node) BadValue(format string, args ...any) { p.bad(p.value(), format, args...) }

// BadKey adds an error about a key, such as a missing or an unknown key. It leaves the value out.
func (p Node) BadKey(format string, args ...any) { p.bad("", format, args...) }

func (p Node) bad(value, format string, args ...any) {
	p.in.errors = append(p.in.errors, Error{p.in.file, p.line, invalid.FieldError{Field: p.key, Message: fmt.Sprintf(format, args...), Value: value}})
}

// scheme matches the only part of a hidden value that errors show.
var scheme = regexp.MustCompile(`^[a-z]{1,12}://`)

// value returns the value at this place as errors show it.
func (p Node) value() string {
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
		if p.in.object {
			return "an object"
		}
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
