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

// Environment is the environment of a process. An empty variable counts as not set.
type Environment struct {
	values map[string]string
	named  map[string]bool // variables that a ${NAME} in a file names
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

// source is the environment or a file, with the errors of its settings.
type source struct {
	file    string // path; empty for the environment
	env     Environment
	expands bool // whether ${NAME} stands for a variable
	object  bool // it is a JSON object that a program sent: see [ReadObject]
	errors  Errors
}

// Read reads the variables that settings list. The variables in needed are also required.
func (env Environment) Read(settings func(*Table), needed ...string) Errors {
	in := &source{env: env}
	for _, f := range newTable(settings).fields {
		p := Node{in: in, key: f.name}
		if value := env.values[f.name]; value != "" {
			p.node = &ast.StringNode{Value: value}
		} else if slices.Contains(needed, f.name) {
			p.BadKey("is required (%s)", f.meaning)
		}
		f.readAt(p)
	}
	return in.errors
}

// Unknown returns an error for each variable that begins with prefix, unless settings list it, a file names it, or ignored
// reports true. It shows no value: a value with a misspelled name may be a password.
func (env Environment) Unknown(prefix string, settings func(*Table), ignored func(name, value string) bool) Errors {
	in, known := &source{}, newTable(settings)
	for name, value := range env.values {
		if strings.HasPrefix(name, prefix) && !env.named[name] && !known.has(name) && !ignored(name, value) {
			Node{in: in, key: name}.BadKey("is not a setting; %s", suggest(name, known.names()))
		}
	}
	slices.SortFunc(in.errors, func(a, b Error) int { return strings.Compare(a.Field, b.Field) })
	return in.errors
}

// ReadYAML reads the text of a file. An empty text gives all settings their defaults. The errors are in the order of
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

// parse returns the one document of the file. It stops at a syntax error, because the meaning of the rest is unknown. The
// parser's error quotes the file with its secrets, so parse uses only its message.
func (in *source) parse(text []byte) (root Node, ok bool) {
	root = Node{in: in, line: 1}
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
	root.BadKey("must be one YAML document; a second one begins here")
	return root, false
}

// isEmpty reports whether a document has no content, such as a comment or %YAML.
func isEmpty(d *ast.DocumentNode) bool {
	_, directive := d.Body.(*ast.DirectiveNode)
	return d.Body == nil || directive
}
