package strictyaml

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// Markers for settings without a default.
const (
	Required = "required"
	Optional = "" // the zero value; the setting's meaning explains it
)

// Table lists the settings of one section: the keys of a mapping, or the variables of an environment.
type Table struct {
	fields   []field
	selector string  // the key that selects one of the cases; empty: no cases
	selected *string // its value
	cases    []variant
	checks   []func(Node)
	pairs    []pair
}

// pair is a rule about two settings: see [Table.Either] and [Table.Needs].
type pair struct {
	first, second string
	excludes      bool // exactly one of them is given; otherwise the first needs the second
}

type field struct {
	name    string
	preset  string // the default, written in YAML; or Required, or Optional
	meaning string // empty: the key is always an error
	read    func(Node)
	step    string     // between the key of a section and the keys of its settings, such as []
	section *Table     // nil: a scalar
	form    Form       // of a scalar
	value   func() any // of a scalar; nil: [Values] leaves it out
}

type variant struct {
	value string
	table *Table
}

// Cases are the values of a key, each with its own settings.
type Cases []Case

// Case is a value of a key with its settings; nil: none.
type Case = struct {
	Value    string
	Settings func(*Table)
}

func newTable(settings func(*Table)) *Table {
	t := &Table{}
	if settings != nil {
		settings(t)
	}
	return t
}

func (t *Table) add(name, preset, meaning string, read func(Node)) {
	t.fields = append(t.fields, field{name: name, preset: preset, meaning: meaning, read: read})
}

// last returns the field that was added last.
func (t *Table) last() *field { return &t.fields[len(t.fields)-1] }

// Section adds a mapping.
func (t *Table) Section(name, preset, meaning string, settings func(*Table)) {
	inner := newTable(settings)
	t.fields = append(t.fields, field{name: name, preset: preset, meaning: meaning, read: inner.read, section: inner})
}

// List adds a list of mappings.
func List[T any](t *Table, name, preset, meaning string, to *[]T, settings func(*T, *Table)) {
	read := func(p Node) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok {
			p.BadValue("must be a list; write [] for none, or leave the key out for the default")
			return
		}
		*to = make([]T, len(sequence.Values))
		for i := range *to {
			of(&(*to)[i], settings).read(p.Item(i))
		}
	}
	t.fields = append(t.fields, field{name: name, preset: preset, meaning: meaning, read: read, step: "[]", section: of(new(T), settings)})
}

// Map adds a mapping from names to mappings. It keeps their order, and stores each name in the field that nameOf returns.
func Map[T any](t *Table, name, preset, meaning string, to *[]T, nameOf func(*T) *string, settings func(*T, *Table)) {
	read := func(p Node) {
		if !p.isMapping("from names to " + name) {
			return
		}
		entries := p.children()
		*to = make([]T, len(entries))
		for i, entry := range entries {
			*nameOf(&(*to)[i]) = entry.name
			of(&(*to)[i], settings).read(entry)
		}
	}
	t.fields = append(t.fields, field{name: name, preset: preset, meaning: meaning, read: read, step: ".NAME", section: of(new(T), settings)})
}

func of[T any](value *T, settings func(*T, *Table)) *Table {
	return newTable(func(t *Table) { settings(value, t) })
}

// Switch adds a required key that selects further settings of the same section. A table has at most one.
func (t *Table) Switch(name, meaning string, to *string, cases Cases) {
	var values []string
	for _, c := range cases {
		values = append(values, c.Value)
		t.cases = append(t.cases, variant{c.Value, newTable(c.Settings)})
	}
	t.selector, t.selected = name, to
	t.OneOf(name, Required, meaning, to, values...)
}

// Unsupported adds a key that is always an error, with a reason. The key may get a meaning later.
func (t *Table) Unsupported(name, why string) {
	t.add(name, Optional, "", func(p Node) { p.BadKey("%s", why) })
}

// Check adds a check of several settings, or fills in values that depend on others. It runs after the whole section has been
// read. A setting with an error has its zero value.
func (t *Table) Check(check func(section Node)) { t.checks = append(t.checks, check) }

// Either requires exactly one of two settings.
func (t *Table) Either(first, second string) {
	t.pairs = append(t.pairs, pair{first, second, true})
	t.Check(func(p Node) {
		a, b := p.Child(first), p.Child(second)
		switch {
		case a.Given() && b.Given():
			b.BadKey("is not allowed beside %s", first)
		case !a.Given() && !b.Given():
			a.BadKey("is required, or %s", second)
		}
	})
}

// Needs requires the second setting if the first one is given.
func (t *Table) Needs(first, second string) {
	t.pairs = append(t.pairs, pair{first, second, false})
	t.Check(func(p Node) {
		if b := p.Child(second); p.Child(first).Given() && !b.Given() {
			b.BadKey("is required beside %s", first)
		}
	})
}

// read reads a section. If the selector of its cases has an error, it does not check keys that may belong to a case.
func (t *Table) read(p Node) {
	shape := "with the keys " + strings.Join(t.names(), ", ")
	if t.cases != nil {
		shape = "with a " + t.selector + " and the settings of that " + t.selector
	}
	if !p.isMapping(shape) {
		return
	}
	t.readFields(p)
	own := &Table{}
	if t.cases != nil {
		i := slices.IndexFunc(t.cases, func(v variant) bool { return v.value == *t.selected })
		if i < 0 {
			return
		}
		own = t.cases[i].table
	}
	t.findUnknown(p, own)
	own.readFields(p)
	for _, check := range slices.Concat(own.checks, t.checks) {
		check(p)
	}
}

func (t *Table) readFields(p Node) {
	for _, f := range t.fields {
		f.readAt(p.Child(f.name))
	}
}

func (f field) readAt(p Node) {
	if p.node == nil {
		switch f.preset {
		case Optional:
			return
		case Required:
			meaning := f.meaning
			if p.in.object {
				meaning = strings.TrimSuffix(meaning, VariablesAllowed)
			}
			p.BadKey("is required (%s)", meaning)
			return
		}
		p = p.standIn(f.preset)
	}
	f.read(p)
}

// findUnknown adds errors for keys that neither the section nor its selected case has.
func (t *Table) findUnknown(p Node, own *Table) {
	for _, child := range p.children() {
		switch {
		case t.has(child.name) || own.has(child.name):
		case slices.ContainsFunc(t.cases, func(v variant) bool { return v.table.has(child.name) }):
			child.BadKey("is not for %s %s", t.selector, *t.selected)
		default:
			child.BadKey("is not a setting; %s", suggest(child.name, append(t.names(), own.names()...)))
		}
	}
}

func (t *Table) has(name string) bool {
	return slices.ContainsFunc(t.fields, func(f field) bool { return f.name == name })
}

// names lists the allowed keys.
func (t *Table) names() []string {
	var all []string
	for _, f := range t.fields {
		if f.meaning != "" {
			all = append(all, f.name)
		}
	}
	return all
}

// Setting describes a setting for a reader of the documentation.
type Setting struct {
	Name    string // an environment variable, or a key such as rules[].limit or channels.NAME.url
	Default string // in YAML; Required, or Optional
	Meaning string // in one phrase, with what is allowed

	Case string // the value of the section's selector that has this setting; empty: all
	Form Form
}

// Describe calls show for each setting of a section and of the sections within it, in the order of their addition. It makes
// the table in docs/settings.md.
func Describe(settings func(*Table), show func(Setting)) { newTable(settings).describe("", "", show) }

func (t *Table) describe(prefix, of string, show func(Setting)) {
	for _, f := range t.fields {
		if f.meaning != "" {
			meaning := f.meaning
			if of != "" {
				meaning = of + ": " + meaning
			}
			show(Setting{prefix + f.name, f.preset, meaning, of, f.form})
		}
		if f.section != nil {
			f.section.describe(prefix+f.name+f.step+".", "", show)
		}
	}
	for _, v := range t.cases {
		v.table.describe(prefix, v.value, show)
	}
}
