package strictyaml

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Strings adds a list of texts.
func (t *Table) Strings(name, preset, meaning string, to *[]string) {
	t.add(name, preset, meaning, func(p Node) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok {
			p.BadValue("must be a list of strings")
			return
		}
		*to = make([]string, len(sequence.Values))
		for i := range sequence.Values {
			(*to)[i], _ = p.Item(i).text(nil)
		}
	})
	t.last().shown(Form{Kind: KindList}, func() any { return *to })
}

// SomeOf adds a list of different words, at least one.
func (t *Table) SomeOf(name, preset, meaning string, to *[]string, words ...string) {
	t.add(name, preset, meaning, func(p Node) {
		sequence, ok := p.node.(*ast.SequenceNode)
		if !ok || len(sequence.Values) == 0 {
			p.BadValue("must be a list with at least one of %s", strings.Join(words, ", "))
			return
		}
		read := make([]string, len(sequence.Values))
		for i := range read {
			var one string
			of := newTable(func(t *Table) { t.OneOf(name, preset, meaning, &one, words...) })
			of.last().read(p.Item(i))
			if one != "" && slices.Contains(read, one) {
				p.Item(i).BadValue("is listed twice")
			}
			read[i] = one
		}
		*to = read
	})
}

// Ints adds a mapping from names to whole numbers.
func (t *Table) Ints(name, preset, meaning string, to *map[string]int) {
	t.add(name, preset, meaning, func(p Node) {
		if !p.isMapping("from names to whole numbers") {
			return
		}
		*to = map[string]int{}
		for _, entry := range p.children() {
			if n, ok := wholeNumber(entry.node); ok {
				(*to)[entry.name] = n
			} else {
				entry.BadValue("must be a whole number")
			}
		}
	})
}

// Words adds a mapping from names to one of a few words each.
func (t *Table) Words(name, preset, meaning string, to *map[string]string, words ...string) {
	t.add(name, preset, meaning, func(p Node) {
		if !p.isMapping("from names to words") {
			return
		}
		read, entries := map[string]string{}, p.children()
		for _, entry := range entries {
			word, ok := textOf(entry.node)
			if ok && slices.Contains(words, word) {
				read[entry.name] = word
			} else {
				entry.BadValue("must be one of %s%s", strings.Join(words, ", "), didYouMean(word, words))
			}
		}
		if len(read) == len(entries) {
			*to = read
		}
	})
}

// OptionalInt is like [Table.Int] for a number that may be absent, which is nil.
func (t *Table) OptionalInt(name, preset, meaning string, to **int, least, most int) {
	var n int
	t.Int(name, preset, meaning, &n, least, most)
	t.present(func() { *to = &n })
}

// OptionalBool is like [Table.Bool] for a value that may be absent, which is nil.
func (t *Table) OptionalBool(name, preset, meaning string, to **bool) {
	var b bool
	t.Bool(name, preset, meaning, &b)
	t.present(func() { *to = &b })
}

// DurationText is like [Table.Duration], and stores the text of the duration.
func (t *Table) DurationText(name, preset, meaning string, to *string, least, most time.Duration) {
	var d time.Duration
	t.Duration(name, preset, meaning, &d, least, most)
	read := t.fields[len(t.fields)-1].read
	t.fields[len(t.fields)-1].read = func(p Node) {
		before := len(p.in.errors)
		if read(p); len(p.in.errors) == before {
			if *to, _ = textOf(p.node); *to == "" {
				*to = d.String()
			}
		}
	}
}

// present calls then when the last added field was read without an error.
func (t *Table) present(then func()) {
	f := &t.fields[len(t.fields)-1]
	read := f.read
	f.read = func(p Node) {
		before := len(p.in.errors)
		if read(p); len(p.in.errors) == before {
			then()
		}
	}
}

// NamedMap adds a mapping from names to mappings, without an order.
func NamedMap[T any](t *Table, name, preset, meaning string, to *map[string]T, settings func(*T, *Table)) {
	read := func(p Node) {
		if !p.isMapping("from names to " + name) {
			return
		}
		for _, entry := range p.children() {
			var value T
			of(&value, settings).read(entry)
			if *to == nil {
				*to = map[string]T{}
			}
			(*to)[entry.name] = value
		}
	}
	t.fields = append(t.fields, field{name: name, preset: preset, meaning: meaning, read: read, step: ".NAME", section: of(new(T), settings)})
}

// Find returns the place at a path below this one, such as rules[1].limit. It returns an empty place if there is no value.
func (p Node) Find(path string) Node {
	for path != "" {
		path = strings.TrimPrefix(path, ".")
		if index, rest, ok := strings.Cut(path, "]"); ok && strings.HasPrefix(index, "[") {
			sequence, isList := p.node.(*ast.SequenceNode)
			i, err := strconv.Atoi(index[1:])
			if err != nil || !isList || i >= len(sequence.Values) {
				return p
			}
			p, path = p.Item(i), rest
			continue
		}
		name := p.step(path)
		p, path = p.Child(name), path[len(name):]
	}
	return p
}

// step returns the first name of a path: the longest key of the mapping that it begins with, or the part before the next separator.
func (p Node) step(path string) (name string) {
	for _, c := range p.children() {
		if rest, ok := strings.CutPrefix(path, c.name); ok && len(c.name) > len(name) && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			name = c.name
		}
	}
	if name == "" {
		name = path
		if i := strings.IndexAny(path, ".["); i > 0 {
			name = path[:i]
		}
	}
	return name
}

// HasError reports whether this place, a part of it, or a place that contains it has an error.
func (p Node) HasError() bool {
	for _, e := range p.in.errors {
		if isPart(p.key, e.Field) || isPart(e.Field, p.key) {
			return true
		}
	}
	return false
}

// isPart reports whether a key equals another one or is a part of it.
func isPart(key, of string) bool {
	rest, ok := strings.CutPrefix(key, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
