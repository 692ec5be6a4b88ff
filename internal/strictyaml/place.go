package strictyaml

import (
	"fmt"
	"regexp"
	"strconv"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/sendquota/sendquota/internal/invalid"
)

// Place is where a setting stands, or would stand.
type Place struct {
	in     *source
	key    string   // such as policy.rules[1].limit
	name   string   // the last part of the key
	line   int      // of the key, or of what it is missing from
	node   ast.Node // what stands here; nil: nothing
	preset bool     // the default stands here, and nobody wrote it
	hidden bool     // what stands here must not be shown
}

// Given reports whether somebody wrote a value here; a default is not given.
func (p Place) Given() bool { return p.node != nil && !p.preset }

// standIn puts a default, written in YAML, where nothing stands.
func (p Place) standIn(text string) Place {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic(fmt.Sprintf("default of %s: %v", p.key, err)) // a table is wrong, which any test shows
	}
	p.node, p.preset = file.Docs[0].Body, true
	return p
}

// children are the entries of the mapping that stands here, in its order.
func (p Place) children() []Place {
	mapping, ok := p.node.(*ast.MappingNode)
	if !ok {
		return nil
	}
	var all []Place
	for _, entry := range mapping.Values {
		c := p.entry(entry.Key.GetToken().Value)
		all = append(all, c.holding(entry.Value, entry.Key))
	}
	return all
}

// Child is the entry of that name in the mapping that stands here. Where there is none, it is an empty place.
func (p Place) Child(name string) Place {
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
func (p Place) entry(name string) Place {
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

// Item is entry i of the list that stands here.
func (p Place) Item(i int) Place {
	node := p.node.(*ast.SequenceNode).Values[i]
	p.key += "[" + strconv.Itoa(i) + "]"
	return p.holding(node, node)
}

// holding is the place with a node in it, and the line where that begins.
func (p Place) holding(node, begin ast.Node) Place {
	if !p.preset {
		p.line = lineOf(begin)
	}
	p.node = node
	return p
}

func lineOf(n ast.Node) int { return n.GetToken().Position.Line }

// isMapping refuses what is not a mapping, and keys that come twice.
func (p Place) isMapping(shape string) bool {
	if _, ok := p.node.(*ast.MappingNode); !ok {
		hint := ""
		if _, null := p.node.(*ast.NullNode); null {
			hint = "; leave the key out for the default"
		}
		p.hidden = true // a URL or a secret may stand where its channel should
		p.BadValue("must be a mapping %s%s", shape, hint)
		return false
	}
	lines := map[string]int{}
	for _, c := range p.children() {
		if first, twice := lines[c.name]; twice {
			c.BadKey("is written twice, first in line %d", first)
			continue
		}
		lines[c.name] = c.line
	}
	return true
}

// BadValue says what is wrong with the value that stands here, and shows it, unless it may hold a secret.
func (p Place) BadValue(format string, args ...any) { p.bad(p.value(), format, args...) }

// BadKey says what is wrong with a key: that it is there, or that it is not. The value does not matter then, and is left
// out.
func (p Place) BadKey(format string, args ...any) { p.bad("", format, args...) }

func (p Place) bad(value, format string, args ...any) {
	p.in.errors = append(p.in.errors, Error{p.in.file, p.line, invalid.FieldError{Field: p.key, Message: fmt.Sprintf(format, args...), Value: value}})
}

// scheme is all of a hidden value that is shown.
var scheme = regexp.MustCompile(`^[a-z]{1,12}://`)

// value is what stands here as a message shows it.
func (p Place) value() string {
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
