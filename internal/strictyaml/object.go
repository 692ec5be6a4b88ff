package strictyaml

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/sendquota/sendquota/internal/invalid"
)

// VariablesAllowed ends the meaning of a secret that a file may write as a variable. It is left out where it does not hold.
const VariablesAllowed = "; may use ${ENV_NAME}"

// ReadObject reads the settings of one section from a JSON object, which another program sent. A member that is null
// counts as absent. No ${NAME} stands for a variable: it is an error in a secret.
//
// The object may leave out the secrets in kept, which belong to an earlier version of the object: they keep their values.
// But a secret that is null, or that the given members exclude, is dropped.
func ReadObject(text []byte, kept map[string]Secret, settings func(*Table)) (invalid.FieldErrors, error) {
	node, err := nodeOf(json.NewDecoder(bytes.NewReader(text)))
	if err != nil {
		return nil, err
	}
	in, t := &source{object: true}, newTable(settings)
	if mapping, ok := node.(*ast.MappingNode); ok {
		t.keep(mapping, kept)
	}
	t.read(Node{in: in, node: node, line: 1})
	var bad invalid.FieldErrors
	for _, e := range in.errors {
		e.Value = plainValue(e.FieldError.Value)
		bad = append(bad, e.FieldError)
	}
	return bad, nil
}

// plainValue returns the value of an error without the quotes of YAML.
func plainValue(shown any) any {
	text, _ := shown.(string)
	if plain, err := strconv.Unquote(text); err == nil {
		return plain
	}
	if text == "" {
		return nil
	}
	return text
}

// keep removes members that are null, and adds the kept secrets that the object leaves out and its members allow.
func (t *Table) keep(object *ast.MappingNode, kept map[string]Secret) {
	given, left := map[string]bool{}, map[string]bool{}
	object.Values = slices.DeleteFunc(object.Values, func(v *ast.MappingValueNode) bool {
		_, null := v.Value.(*ast.NullNode)
		dropNulls(v.Value)
		given[v.Key.GetToken().Value] = !null
		left[v.Key.GetToken().Value] = true
		return null
	})
	names := map[string]bool{}
	for name := range kept {
		names[name] = !left[name] && kept[name] != ""
	}
	pairs := t.pairs
	for _, v := range t.cases {
		if v.value == textIn(object, t.selector) {
			pairs = slices.Concat(pairs, v.table.pairs)
		}
	}
	for again := true; again; {
		again = false
		for _, p := range pairs {
			for _, of := range [][2]string{{p.first, p.second}, {p.second, p.first}} {
				drop := names[of[0]] && (p.excludes && given[of[1]] || !p.excludes && of[0] == p.first && !given[of[1]] && !names[of[1]])
				again = again || drop
				names[of[0]] = names[of[0]] && !drop
			}
		}
	}
	for name, keeps := range names {
		if keeps {
			object.Values = append(object.Values, ast.MappingValue(tokenOf(":"), keyOf(name), textNode(string(kept[name]))))
		}
	}
}

// dropNulls removes the members of an object that are null.
func dropNulls(node ast.Node) {
	if object, is := node.(*ast.MappingNode); is {
		object.Values = slices.DeleteFunc(object.Values, func(v *ast.MappingValueNode) bool {
			_, null := v.Value.(*ast.NullNode)
			return null
		})
	}
}

// textIn returns a text member of an object, or "".
func textIn(object *ast.MappingNode, name string) string {
	for _, v := range object.Values {
		if v.Key.GetToken().Value == name {
			text, _ := textOf(v.Value)
			return text
		}
	}
	return ""
}

// masked reports whether the value is the form that answers show instead of a secret.
func (p Node) masked() bool {
	if object, is := p.node.(*ast.MappingNode); is {
		return slices.ContainsFunc(object.Values, func(v *ast.MappingValueNode) bool { return v.Key.GetToken().Value == "set" })
	}
	text, ok := textOf(p.node)
	return ok && text != "" && (text == redacted || strings.Trim(text, "*•") == "")
}

// nodeOf reads the next JSON value as a node of YAML.
func nodeOf(d *json.Decoder) (ast.Node, error) {
	d.UseNumber()
	next, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := next.(type) {
	case string:
		return textNode(v), nil
	case bool:
		return ast.Bool(tokenOf(strconv.FormatBool(v))), nil
	case json.Number:
		return numberNode(v), nil
	case json.Delim:
		return containerOf(d, v)
	}
	return ast.Null(tokenOf("null")), nil
}

func containerOf(d *json.Decoder, begin json.Delim) (ast.Node, error) {
	mapping, sequence := ast.Mapping(tokenOf("{"), true), ast.Sequence(tokenOf("["), true)
	for d.More() {
		var key ast.MapKeyNode
		if begin == '{' {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			key = keyOf(fmt.Sprint(name))
		}
		value, err := nodeOf(d)
		if err != nil {
			return nil, err
		}
		if key != nil {
			mapping.Values = append(mapping.Values, ast.MappingValue(tokenOf(":"), key, value))
		} else {
			sequence.Values = append(sequence.Values, value)
		}
	}
	if _, err := d.Token(); err != nil && err != io.EOF {
		return nil, err
	}
	if begin == '{' {
		return mapping, nil
	}
	return sequence, nil
}

// numberNode returns a whole number, also for 5.0 and 5e0, or a float.
func numberNode(n json.Number) ast.Node {
	if _, err := strconv.ParseInt(n.String(), 10, 64); err == nil {
		return ast.Integer(tokenOf(n.String()))
	}
	if f, err := n.Float64(); err == nil && f == float64(int64(f)) && f > -1e15 && f < 1e15 {
		return ast.Integer(tokenOf(strconv.FormatInt(int64(f), 10)))
	}
	return ast.Float(tokenOf(n.String()))
}

func textNode(text string) *ast.StringNode { return ast.String(tokenOf(text)) }

func keyOf(name string) ast.MapKeyNode { return textNode(name) }

func tokenOf(text string) *token.Token { return token.New(text, text, &token.Position{Line: 1}) }
