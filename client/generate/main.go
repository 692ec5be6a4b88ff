// Command generate writes the methods of package client from the API's document: a method for each operation, in a group for
// each tag, with the documentation of the document. `make generate` runs it.
//
// A method has the name of its operation, without the words of its group: submit-push of Pushes is Pushes.Submit. Its
// parameters are the Idempotency-Key, the places of the path, the body, and the options of a query. Lists with pages are
// iterators, lines are streams. The condition If-Match and a dry run are methods of their own. exceptions.go lists the rules
// that the document does not contain.
package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/format"
	"os"
	"text/template"
)

func main() {
	text, err := generate("../internal/httpapi/openapi.json", "overlay.yaml")
	if err == nil {
		err = os.WriteFile("methods.go", text, 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

//go:embed methods.tmpl
var file string

// generate returns the text of methods.go. Its arguments are the paths of the document and of the overlay of the types.
func generate(document, overlay string) ([]byte, error) {
	d, err := read(document, overlay)
	if err != nil {
		return nil, err
	}
	parsed, err := template.New("methods").Funcs(template.FuncMap{"comment": comment}).Parse(file)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := parsed.Execute(&text, d); err != nil {
		return nil, err
	}
	return format.Source(text.Bytes())
}
