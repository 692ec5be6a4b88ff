package config

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// readFile reads the YAML file at path, or, if path is empty, the defaults.
func (c *Config) readFile(path string, env environment) Errors {
	if path == "" {
		return c.readYAML("", nil, env)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		if broken := (*fs.PathError)(nil); errors.As(err, &broken) {
			err = broken.Err
		}
		in := &source{}
		place{in: in, key: ConfigVariable, node: &ast.StringNode{Value: path}}.fault("cannot be read: %v", err)
		return in.faults
	}
	return c.readYAML(path, text, env)
}

// readYAML reads the text of the file. Its faults come in the order of lines.
func (c *Config) readYAML(file string, text []byte, env environment) Errors {
	in := &source{file: file, env: env}
	for _, ref := range reference.FindAllSubmatch(text, -1) {
		env.named[string(ref[1])] = true
	}
	if root, ok := in.parse(text); ok {
		object(c).into(root)
	}
	slices.SortStableFunc(in.faults, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return in.faults
}

// parse finds the one document of the file. A syntax error ends it: what the
// rest of the file means is not known then. The parser's own text of an error
// quotes the file and with it its secrets, so only its message is taken.
func (in *source) parse(text []byte) (root place, ok bool) {
	root = place{in: in, line: 1}
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		message := "cannot be parsed"
		if syntax := yaml.Error(nil); errors.As(err, &syntax) {
			message = syntax.GetMessage()
			root.line = syntax.GetToken().Position.Line
		}
		root.refuse("is not YAML: %s", message)
		return root, false
	}
	docs := slices.DeleteFunc(parsed.Docs, isEmpty)
	switch len(docs) {
	case 0:
		return root.standIn("{}"), true
	case 1:
		root.node = docs[0].Body
		return root, true
	}
	root.line = lineOf(docs[1].Body)
	root.refuse("must be one YAML document; here begins a second")
	return root, false
}

// isEmpty reports whether a document says nothing: a comment, or %YAML.
func isEmpty(d *ast.DocumentNode) bool {
	_, directive := d.Body.(*ast.DirectiveNode)
	return d.Body == nil || directive
}
