package httpapi

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

// TestRights_Documented: the tables of docs/security.md list the scopes of each role and of each operation. Run with
// -update after a change.
func TestRights_Documented(t *testing.T) {
	const path, begin, end = "../../docs/security.md", "<!-- rights: written by `go test ./internal/httpapi -run Rights -update` -->\n", "<!-- /rights -->"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	tables, after, foundEnd := strings.Cut(rest, end)
	if !found || !foundEnd {
		t.Fatalf("%s has no place for the rights", path)
	}
	want := "\n" + scopeTable() + "\n" + operationTable() + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if tables != want {
		t.Errorf("the rights in %s are out of date; run: go test ./internal/httpapi -run Rights -update\ngot:\n%s\nwant:\n%s", path, tables, want)
	}
}

// rolesWith names the roles that have a scope.
func rolesWith(scope string) []string {
	var roles []string
	for _, r := range user.Roles {
		if holder := (push.Caller{Scopes: r.Scopes()}); holder.May(scope) {
			roles = append(roles, string(r))
		}
	}
	return roles
}

func scopeTable() string {
	var b strings.Builder
	b.WriteString("| scope | is part of |")
	for _, r := range user.Roles {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString("\n|---|---|" + strings.Repeat("---|", len(user.Roles)) + "\n")
	for _, scope := range push.Scopes {
		var wider []string
		for _, other := range push.Scopes {
			if holder := (push.Caller{Scopes: []string{other}}); other != scope && holder.May(scope) {
				wider = append(wider, "`"+other+"`")
			}
		}
		fmt.Fprintf(&b, "| `%s` | %s |", scope, strings.Join(wider, ", "))
		for _, r := range user.Roles {
			mark := ""
			if slices.Contains(rolesWith(scope), string(r)) {
				mark = "yes"
			}
			fmt.Fprintf(&b, " %s |", mark)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func operationTable() string {
	var b strings.Builder
	b.WriteString("| operation | scope | roles | needs, too | roles then |\n|---|---|---|---|---|\n")
	var cfg Config
	for _, o := range cfg.operations(rest.NewSpec(rest.New(nil, newDocument(), rest.Config{}), newDocument()), nil, time.Now) {
		if o.Scope == "" {
			fmt.Fprintf(&b, "| `%s %s` | none | everybody | | |\n", o.Method, o.Path)
			continue
		}
		also, then := o.Also.When, ""
		if o.Also.Scope != "" {
			also = fmt.Sprintf("%s: `%s`", o.Also.When, o.Also.Scope)
			both := slices.DeleteFunc(rolesWith(o.Scope), func(role string) bool { return !slices.Contains(rolesWith(o.Also.Scope), role) })
			then = strings.Join(both, ", ")
		}
		fmt.Fprintf(&b, "| `%s %s` | `%s` | %s | %s | %s |\n", o.Method, o.Path, o.Scope, strings.Join(rolesWith(o.Scope), ", "), also, then)
	}
	return b.String()
}
