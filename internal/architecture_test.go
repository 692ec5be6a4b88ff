// Package internal_test holds the packages to the design: who may import whom.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sendquota/sendquota/"

// mayImport lists what every package may import of ours; arrows point down
// only. What stands in docs/architecture.md says the same in words.
var mayImport = map[string][]string{
	"migrations":  {},
	"push":        {},
	"config":      {},
	"build":       {},
	"cli":         {"build"},
	"telemetry":   {"build"},
	"groupcommit": {},
	"bulkhead":    {},
	"health":      {},
	"rediskey":    {},
	"failpoint":   {},
	"process":     {},
	"quota":       {"groupcommit", "rediskey"},
	"ratelimit":   {"groupcommit", "bulkhead", "rediskey"},
	"outbound":    {},
	"pace":        {"rediskey"},
	"channel":     {"push", "outbound", "pace", "failpoint"},
	"queue":       {"push", "rediskey"},
	"store":       {"push", "quota", "groupcommit", "bulkhead", "failpoint", "migrations"},
	"schedule":    {"push", "quota", "store", "bulkhead", "failpoint"},
	"delivery":    {"push", "quota", "channel", "pace", "store", "failpoint"},
	"notify":      {"push", "groupcommit", "outbound", "store"},
	"httpapi":     {"push", "quota", "ratelimit", "bulkhead", "health", "schedule", "store", "notify"},
	"devstack":    {"process", "store", "migrations", "config"},
	"testenv":     {"process", "store", "devstack", "migrations", "config"},
	"app": {"migrations", "push", "config", "telemetry", "groupcommit", "quota", "ratelimit", "pace", "channel", "queue", "store", "schedule",
		"delivery", "notify", "httpapi", "health", "devstack"},
	"cmd": {"app", "cli", "config", "devstack", "store", "push", "telemetry"},
}

// onlyIn lists the libraries that stay behind one package.
var onlyIn = map[string][]string{
	"github.com/hibiken/asynq": {"queue"},
	"github.com/jackc/pgx":     {"store", "devstack", "testenv"},
}

func TestImports(t *testing.T) {
	imports := imports(t)
	for name, paths := range imports {
		allowed, known := mayImport[name]
		if !known {
			t.Errorf("the package %s is not in the table", name)
			continue
		}
		for _, path := range paths {
			if ours, ok := strings.CutPrefix(path, module); ok && !slices.Contains(allowed, short(ours)) {
				t.Errorf("%s imports %s, which it may not", name, ours)
			}
			for library, users := range onlyIn {
				if strings.HasPrefix(path, library) && !slices.Contains(users, name) {
					t.Errorf("%s imports %s: only %v may", name, path, users)
				}
			}
		}
	}
	for name := range mayImport {
		if _, ok := imports[name]; !ok {
			t.Errorf("there is no package %s", name)
		}
	}
}

// TestArrowsPointDown: the table has no circle.
func TestArrowsPointDown(t *testing.T) {
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("a circle: %v", append(above, name))
		}
		for _, next := range mayImport[name] {
			visit(next, append(slices.Clone(above), name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(mayImport)) {
		visit(name, nil)
	}
}

// imports maps each package to what its files import, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		folder := strings.Split(filepath.ToSlash(path), "/")
		if d != nil && d.IsDir() && len(folder) == 2 && !slices.Contains([]string{"cmd", "internal", "migrations"}, folder[1]) {
			return filepath.SkipDir
		}
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		name := short(filepath.ToSlash(filepath.Dir(path))[len("../"):])
		paths := found[name]
		for _, spec := range file.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			paths = append(paths, p)
		}
		found[name] = paths
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// short is the name that the table has for a folder.
func short(folder string) string {
	parts := strings.Split(folder, "/")
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}
