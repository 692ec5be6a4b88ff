// Package internal_test holds the packages and the documents to each other.
package internal_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/sendquota/sendquota/"

// TestImports holds every package to the tables of docs/architecture.md: which of our packages it imports, and which
// packages import a library that stays behind a few.
func TestImports(t *testing.T) {
	allowed, onlyIn := readTable(t, "may import"), readTable(t, "imported only by")
	imports := imports(t)
	for name, paths := range imports {
		packages, known := allowed[name]
		if !known {
			t.Errorf("the package %s is not in the table", name)
			continue
		}
		for _, path := range paths {
			if ours, ok := strings.CutPrefix(path, module); ok && short(ours) != name && !slices.Contains(packages, short(ours)) {
				t.Errorf("%s imports %s, which is not allowed", name, ours)
			}
			for library, users := range onlyIn {
				if strings.HasPrefix(path, library) && !slices.Contains(users, name) {
					t.Errorf("%s imports %s: only %v may", name, path, users)
				}
			}
		}
	}
	for name := range allowed {
		if _, ok := imports[name]; !ok {
			t.Errorf("there is no package %s", name)
		}
	}
}

// TestImports_Store: packages of the domain declare the parts of the store that they use; programs pass the store.
func TestImports_Store(t *testing.T) {
	exceptions := []string{}
	imports := imports(t)
	for _, name := range []string{"bulk", "campaign", "delivery", "notify", "queue", "recurring", "schedule", "upkeep"} {
		holds := slices.Contains(imports[name], module+"internal/store")
		switch excepted := slices.Contains(exceptions, name); {
		case imports[name] == nil:
			t.Errorf("there is no package %s", name)
		case holds && !excepted:
			t.Errorf("%s imports internal/store: declare an interface beside the type that uses it", name)
		case !holds && excepted:
			t.Errorf("%s does not import internal/store: remove the exception", name)
		}
	}
}

// TestReadme_Packages: the table of folders in the README has every package.
func TestReadme_Packages(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for name := range imports(t) {
		if _, err := os.Stat(name); err == nil && !strings.Contains(string(page), "`internal/"+name+"`") {
			t.Errorf("the table of folders lacks internal/%s", name)
		}
	}
}

// TestImports_NoCycle: arrows of the table point down only.
func TestImports_NoCycle(t *testing.T) {
	allowed := readTable(t, "may import")
	var visit func(name string, above []string)
	visit = func(name string, above []string) {
		if slices.Contains(above, name) {
			t.Fatalf("a cycle: %v", append(above, name))
		}
		for _, next := range allowed[name] {
			visit(next, append(slices.Clone(above), name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(allowed)) {
		visit(name, nil)
	}
}

// readTable reads the table of docs/architecture.md whose second column has this heading. A row lists names in `backticks`
// in its first cell, and in its second cell what each of them maps to: names with commas, or "none". A long list has several rows.
func readTable(t *testing.T, heading string) map[string][]string {
	t.Helper()
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, found := strings.Cut(string(page), "| "+heading+" |\n|---|---|\n")
	if !found {
		t.Fatalf("docs/architecture.md has no table %q", heading)
	}
	table := map[string][]string{}
	for row := range strings.Lines(body) {
		cells := strings.Split(row, "|")
		if len(cells) != 4 {
			break
		}
		var to []string
		if cell := strings.TrimSpace(cells[2]); cell != "none" {
			to = strings.Split(cell, ", ")
		}
		for _, name := range backquoted.FindAllStringSubmatch(cells[1], -1) {
			for _, one := range to {
				if slices.Contains(table[name[1]], one) {
					t.Errorf("%s stands twice in the row of %s in the table %q", one, name[1], heading)
				}
			}
			table[name[1]] = append(table[name[1]], to...)
		}
	}
	return table
}

var backquoted = regexp.MustCompile("`([^`]+)`")

// imports maps each package to what its files import, tests left out.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		folder := strings.Split(filepath.ToSlash(path), "/")
		if d != nil && d.IsDir() && len(folder) == 2 && !slices.Contains([]string{"client", "cmd", "internal", "migrations"}, folder[1]) {
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
		slices.Sort(paths)
		found[name] = slices.Compact(paths)
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
	if last := parts[len(parts)-1]; len(parts) > 2 && strings.HasSuffix(last, "test") {
		return last // the harness of a package's tests, as httptest is of net/http
	}
	if parts[0] == "internal" && len(parts) > 1 {
		return parts[1]
	}
	return parts[0]
}

// TestRedisClients: programs name go-redis' clients and options only where they open a client, or pass it to asynq. Each
// other package that names them takes seconds longer to compile.
func TestRedisClients(t *testing.T) {
	named := regexp.MustCompile(`redis\.(Client|ClusterClient|UniversalClient|Options|UniversalOptions|PubSub|ParseURL|New(Universal|Cluster)?Client)\b`)
	found := map[string]bool{}
	for _, folder := range []string{".", "../cmd", "../chaos"} {
		if err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			source, err := os.ReadFile(path)
			if named.Match(source) {
				found[filepath.Dir(path)] = true
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := slices.Sorted(maps.Keys(found)), []string{"queue", "redisclient"}; !slices.Equal(got, want) {
		t.Errorf("%v name clients of go-redis, want %v: use redisclient.Client, or redis.Cmdable", got, want)
	}
}
