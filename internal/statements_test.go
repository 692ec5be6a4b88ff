package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestStatements_NothingVolatile: no statement that updates or deletes rows of a table which is divided by shard says a function whose
// value changes within the statement. An engine that spreads these tables over servers refuses it (docs/scale.md).
func TestStatements_NothingVolatile(t *testing.T) {
	files, err := filepath.Glob("store/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	changes := regexp.MustCompile(`(?s)(?:UPDATE|DELETE FROM) (?:live|\{?pushes\}?|\{?sends\}?|recipients|campaign_recipients|stat_deltas)\b`)
	volatile := regexp.MustCompile(`(?:clock_timestamp|timeofday|random|gen_random_uuid|nextval)\(`)
	statements := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			x, is := n.(ast.Expr)
			if !is {
				return true
			}
			switch x.(type) {
			case *ast.BinaryExpr, *ast.BasicLit: // the whole of a text that is written in parts
			default:
				return true
			}
			text := textIn(x)
			if !changes.MatchString(text) {
				return true
			}
			statements++
			if said := volatile.FindString(text); said != "" {
				t.Errorf("%s: the statement says %s), which an engine of shards refuses: say statement_timestamp(), or give it the value", set.Position(x.Pos()), said)
			}
			return false
		})
	}
	if statements < 20 {
		t.Errorf("%d statements only were found", statements)
	}
}

// textIn is all text that is written in an expression.
func textIn(x ast.Expr) string {
	var b strings.Builder
	ast.Inspect(x, func(n ast.Node) bool {
		if lit, is := n.(*ast.BasicLit); is && lit.Kind == token.STRING {
			text, _ := strconv.Unquote(lit.Value) // the compiler has read it
			b.WriteString(text)
		}
		return true
	})
	return b.String()
}
