package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Environment is the environment of a process. A variable that is set to nothing counts as not set.
type Environment struct {
	values map[string]string
	named  map[string]bool // by a ${NAME} in a file
}

// NewEnvironment takes an environment in the form of os.Environ.
func NewEnvironment(environ []string) Environment {
	env := Environment{values: map[string]string{}, named: map[string]bool{}}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		env.values[name] = value
	}
	return env
}

// source is where settings come from, the environment or a file, and gathers its errors.
type source struct {
	file    string // path; empty for the environment
	env     Environment
	expands bool // whether ${NAME} stands for a variable
	errors  Errors
}

// Read reads the variables that settings list. Those in needed are required as well.
func (env Environment) Read(settings func(*Table), needed ...string) Errors {
	in := &source{env: env}
	for _, f := range newTable(settings).fields {
		p := Place{in: in, key: f.name}
		if value := env.values[f.name]; value != "" {
			p.node = &ast.StringNode{Value: value}
		} else if slices.Contains(needed, f.name) {
			p.BadKey("is required (%s)", f.meaning)
		}
		f.readAt(p)
	}
	return in.errors
}

// Unknown refuses the variables that begin with prefix, unless settings list them, a file that was read names them, or
// ignored reports true. It shows no value: one that was written to the wrong name may hold a password.
func (env Environment) Unknown(prefix string, settings func(*Table), ignored func(name, value string) bool) Errors {
	in, known := &source{}, newTable(settings)
	for name, value := range env.values {
		if strings.HasPrefix(name, prefix) && !env.named[name] && !known.has(name) && !ignored(name, value) {
			Place{in: in, key: name}.BadKey("is not a setting; %s", suggest(name, known.names()))
		}
	}
	slices.SortFunc(in.errors, func(a, b Error) int { return strings.Compare(a.Field, b.Field) })
	return in.errors
}

// ReadYAML reads the text of a file. Without any text, all settings have their defaults. The errors come in the order of
// lines.
func (env Environment) ReadYAML(file string, text []byte, settings func(*Table)) Errors {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // the byte order mark of some editors
	in := &source{file: file, env: env, expands: true}
	for _, ref := range reference.FindAllSubmatch(text, -1) {
		env.named[string(ref[1])] = true
	}
	if root, ok := in.parse(text); ok {
		newTable(settings).read(root)
	}
	slices.SortStableFunc(in.errors, func(a, b Error) int { return cmp.Compare(a.Line, b.Line) })
	return in.errors
}

// parse finds the one document of the file. A syntax error ends it: the meaning of the rest is not known then. The
// parser's own text of an error quotes the file and with it its secrets, so only its message is taken.
func (in *source) parse(text []byte) (root Place, ok bool) {
	root = Place{in: in, line: 1}
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		message := "cannot be parsed"
		if syntax := yaml.Error(nil); errors.As(err, &syntax) {
			message = syntax.GetMessage()
			root.line = syntax.GetToken().Position.Line
		}
		root.BadKey("is not YAML: %s", message)
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
	root.BadKey("must be one YAML document; here begins a second")
	return root, false
}

// isEmpty reports whether a document says nothing: a comment, or %YAML.
func isEmpty(d *ast.DocumentNode) bool {
	_, directive := d.Body.(*ast.DirectiveNode)
	return d.Body == nil || directive
}
