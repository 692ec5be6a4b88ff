package config

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// field is one setting: one line of a table.
type field struct {
	name    string
	preset  string // the default, written in YAML; or required, or optional
	meaning string // empty: the key is known only to be refused
	reader
}

// What stands for a default where there is none.
const (
	required = "required"
	optional = "" // the zero value, which is documented where it is
)

// reader turns what stands at a place into a setting. What it cannot read it
// faults, and leaves the setting zero.
type reader struct {
	into   func(place)
	step   string  // from the key of a section to those of its fields, such as []
	fields []field // of a section
}

// section is a struct that is written as a mapping.
type section interface {
	fields() []field
}

// checker is a section with more to check, or to fill in, than one field can
// tell. A field at fault is zero then.
type checker interface {
	check(place)
}

func (f field) read(p place) {
	if p.node == nil {
		switch f.preset {
		case optional:
			return
		case required:
			p.refuse("is required (%s)", f.meaning)
			return
		}
		p = p.standIn(f.preset)
	}
	f.into(p)
}

// object reads a section.
func object(s section) reader {
	fields := s.fields()
	return reader{fields: fields, into: func(p place) {
		allowed := names(fields)
		if !p.isMapping("with the keys " + strings.Join(allowed, ", ")) {
			return
		}
		for _, c := range p.children() {
			if !slices.ContainsFunc(fields, func(f field) bool { return f.name == c.name }) {
				c.refuse("is not a setting; %s", suggest(c.name, allowed))
			}
		}
		for _, f := range fields {
			f.read(p.child(f.name))
		}
		if c, ok := s.(checker); ok {
			c.check(p)
		}
	}}
}

// list reads a list of sections.
func list[T any, S interface {
	*T
	section
}](to *[]T) reader {
	return reader{step: "[]", fields: S(new(T)).fields(), into: func(p place) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok {
			p.fault("must be a list; write [] for none, or leave the key out for the default")
			return
		}
		*to = make([]T, len(sequence.Values))
		for i := range *to {
			object(S(&(*to)[i])).into(p.item(i))
		}
	}}
}

// isMapping faults what is not a mapping, and keys that come twice.
func (p place) isMapping(kind string) bool {
	if _, ok := p.node.(*ast.MappingNode); !ok {
		hint := ""
		if _, null := p.node.(*ast.NullNode); null {
			hint = "; leave the key out for the default"
		}
		p.hidden = true // a URL or a secret may stand where its channel should
		p.fault("must be a mapping %s%s", kind, hint)
		return false
	}
	lines := map[string]int{}
	for _, c := range p.children() {
		if first, twice := lines[c.name]; twice {
			c.refuse("is written twice, first in line %d", first)
			continue
		}
		lines[c.name] = c.line
	}
	return true
}

// names lists the keys of a table that may be used.
func names(fields []field) []string {
	var all []string
	for _, f := range fields {
		if f.meaning != "" {
			all = append(all, f.name)
		}
	}
	return all
}
