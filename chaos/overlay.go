package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// overlay holds the texts that the compiler reads in place of files, by the files' paths.
type overlay map[string]string

// mutated returns an overlay with mutations of this module. It runs at or below the module's root.
func mutated(ctx context.Context, mutations []mutation) (overlay, error) {
	mod, err := goEnv(ctx, "GOMOD")
	if err != nil {
		return nil, err
	}
	o := overlay{}
	for _, m := range mutations {
		if err := o.replace(filepath.Join(filepath.Dir(mod), m.file), m.old, m.new); err != nil {
			return nil, err
		}
	}
	return o, nil
}

// replace replaces a text in a file. It is an error if the text does not stand there exactly once.
func (o overlay) replace(path, from, to string) error {
	text, known := o[path]
	if !known {
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text = string(source)
	}
	if n := strings.Count(text, from); n != 1 {
		return fmt.Errorf("%s contains %d times, instead of once, the text %q", path, n, from)
	}
	o[path] = strings.Replace(text, from, to, 1)
	return nil
}

// write writes the overlay into a new folder, and returns the path of the file that `go build -overlay` wants.
func (o overlay) write(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	replaced := map[string]string{}
	for path, text := range o {
		replaced[path] = filepath.Join(dir, filepath.Base(filepath.Dir(path))+"-"+filepath.Base(path))
		if err := os.WriteFile(replaced[path], []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, list, 0o600)
}

// goEnv asks the go command for a variable.
func goEnv(ctx context.Context, name string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", name).Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}
