package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forPrograms lists the files that write Go's text of a duration, such as 1h0m0s, for programs, with its use.
var forPrograms = map[string]string{
	"internal/console/system/keys.go":        "a member of a request",
	"internal/delivery/channelqueues.go":     "a log line",
	"internal/httpapi/pushes/bulkchanges.go": "the member shift",
	"internal/httpapi/pushes/bulkfields.go":  "the value of a fault",
	"internal/httpapi/records/channels.go":   "the member per",
	"internal/invalid/invalid.go":            "the member limit",
	"internal/push/errors.go":                "an error between packages",
	"internal/recurrence/schedule.go":        "members that are time spans",
	"internal/ratelimit/limit.go":            "the value of a fault",
	"internal/store/bulk/changes.go":         "the audit log, which the console puts into words",
	"internal/store/campaigns/campaigns.go":  "the audit log, which the console puts into words",
	"internal/store/accounts/keyrotate.go":   "the audit log, which the console puts into words",
	"internal/store/webhooks/webhooks.go":    "the audit log, which the console puts into words",
	"internal/strictyaml/collections.go":     "a setting that is kept as it is written",
	"internal/strictyaml/form.go":            "a setting in JSON",
}

// TestSentences_Durations: a duration in a sentence is written by [duration.Words], as in "within 1 minute". Go's own text, 1m0s, is in
// log lines and in what programs read.
func TestSentences_Durations(t *testing.T) {
	w := durationsSaid{t: t, set: token.NewFileSet(), packages: map[string]*types.Package{}}
	said, left := 0, map[string]string{}
	for file, what := range forPrograms {
		left[file] = what
	}
	for _, root := range []string{"../internal", "../cmd"} {
		for _, folder := range foldersBelow(t, root) {
			for _, call := range w.calls(t, folder) {
				said++
				switch path := strings.TrimPrefix(filepath.ToSlash(w.set.Position(call.at).Filename), "../"); {
				case call.asString && forPrograms[path] != "":
					delete(left, path)
				default:
					t.Errorf("%s: a duration becomes text; use duration.Words", w.set.Position(call.at))
				}
			}
		}
	}
	for file, what := range left {
		t.Errorf("%s has no duration that is %s any more", file, what)
	}
	if said == 0 {
		t.Error("no duration was found")
	}
}

// TestSentences_ManyHours: sentences in the code do not say 720h or 8760h.
func TestSentences_ManyHours(t *testing.T) {
	hours := regexp.MustCompile(`\b[0-9]{3,}h\b`)
	for _, root := range []string{"../internal", "../cmd"} {
		for _, folder := range foldersBelow(t, root) {
			set := token.NewFileSet()
			for _, file := range filesOf(t, set, folder) {
				ast.Inspect(file, func(n ast.Node) bool {
					if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING && strings.Contains(lit.Value, " ") && hours.MatchString(lit.Value) {
						t.Errorf("%s: %s is said in hours", set.Position(lit.Pos()), hours.FindString(lit.Value))
					}
					return true
				})
			}
		}
	}
}

// foldersBelow are the folders below one, and itself.
func foldersBelow(t *testing.T, root string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// filesOf reads the files of a folder, tests left out.
func filesOf(t *testing.T, set *token.FileSet, folder string) (files []*ast.File) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// durationsSaid finds durations that become text. It knows the types of our packages and of package time; what others declare has no type.
type durationsSaid struct {
	t        *testing.T
	set      *token.FileSet
	packages map[string]*types.Package
}

// timeSource declares the functions of package time that return durations. The real source is missing if the test was
// built with -trimpath.
const timeSource = `package time
type Duration int64
const Nanosecond, Microsecond, Millisecond, Second, Minute, Hour Duration = 1, 1e3, 1e6, 1e9, 6e10, 36e11
func (Duration) Abs() Duration
func (Duration) Round(Duration) Duration
func (Duration) String() string
func (Duration) Truncate(Duration) Duration
func ParseDuration(string) (Duration, error)
func Since(Time) Duration
func Until(Time) Duration
type Location struct{}
type Time struct{}
func Now() Time
func (Time) Add(Duration) Time
func (Time) In(*Location) Time
func (Time) Round(Duration) Time
func (Time) Sub(Time) Duration
func (Time) Truncate(Duration) Time
func (Time) UTC() Time`

// durationText is a place where a duration becomes text: by its method String, or as an argument of package fmt.
type durationText struct {
	at       token.Pos
	asString bool
}

// Import implements [types.Importer].
func (w *durationsSaid) Import(path string) (*types.Package, error) {
	if path == "time" && w.packages[path] == nil {
		file, err := parser.ParseFile(w.set, "time.go", timeSource, 0)
		if err != nil {
			return nil, err
		}
		w.packages[path], _ = w.check(path, []*ast.File{file}, nil)
	}
	if of, is := strings.CutPrefix(path, module); is && w.packages[path] == nil {
		w.packages[path], _ = w.check(path, filesOf(w.t, w.set, "../"+of), nil)
	}
	if w.packages[path] == nil {
		w.packages[path] = types.NewPackage(path, filepath.Base(path))
		w.packages[path].MarkComplete()
	}
	return w.packages[path], nil
}

// check reads the types of a package. What it cannot know is no error.
func (w *durationsSaid) check(path string, files []*ast.File, info *types.Info) (*types.Package, error) {
	config := types.Config{Importer: w, Error: func(error) {}, FakeImportC: true}
	return config.Check(path, w.set, files, info)
}

// calls are the places of a folder where a duration becomes text that is not logged.
func (w *durationsSaid) calls(t *testing.T, folder string) (found []durationText) {
	t.Helper()
	files := filesOf(t, w.set, folder)
	info := types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	w.check(module+filepath.ToSlash(folder)[len("../"):], files, &info)
	is := func(x ast.Expr) bool {
		named, ok := types.Unalias(info.TypeOf(x)).(*types.Named)
		return ok && named.Obj().Name() == "Duration" && named.Obj().Pkg().Path() == "time"
	}
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			by, ok := call.Fun.(*ast.SelectorExpr)
			switch {
			case !ok:
			case logs.MatchString(by.Sel.Name):
				return false
			case by.Sel.Name == "String" && is(by.X):
				found = append(found, durationText{call.Pos(), true})
			case types.ExprString(by.X) == "fmt":
				for _, arg := range call.Args {
					if count, ok := arg.(*ast.BinaryExpr); is(arg) && (!ok || count.Op != token.QUO) {
						found = append(found, durationText{arg.Pos(), false})
					}
				}
			}
			return true
		})
	}
	return found
}

// logs are the methods of a logger.
var logs = regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$`)
