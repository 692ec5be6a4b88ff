// Command openapidiff lists in what two OpenAPI documents differ in meaning: `openapidiff before.json after.json`. It writes every
// reference out, so that a component may be moved, shared or written in place, and compares what is left. It also lists the
// components that are gone, because clients name types after them. Its exit status is 1 if there are differences.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openapidiff before.json after.json")
		os.Exit(2)
	}
	differences, err := run(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Fprintln(os.Stderr, "openapidiff:", err)
		os.Exit(2)
	}
	for _, d := range differences {
		fmt.Println(d)
	}
	if len(differences) > 0 {
		os.Exit(1)
	}
}

func run(before, after string) ([]string, error) {
	var docs [2]map[string]any
	for i, name := range []string{before, after} {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &docs[i]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return compare(docs[0], docs[1])
}
