// Package migrations embeds the SQL files that make and change the schema. They are applied in the order of their
// numbers by store.Migrate.
package migrations

import (
	"embed"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
)

// FS holds the files NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS

// Newest returns the number of the newest migration.
func Newest() int64 { return newest(func(string) bool { return true }) }

// Needed returns the number of the newest migration that programs need. Those that contract the schema may follow it.
func Needed() int64 { return newest(func(text string) bool { return !Contracts(text) }) }

var contract = regexp.MustCompile(`(?m)^-- contract: `)

// Contracts reports whether a migration drops what only programs of the release before use: none of them may be at work
// any more. The line that says so begins with "-- contract:".
func Contracts(text string) bool { return contract.MatchString(text) }

// newest returns the number of the newest migration of a kind.
func newest(is func(text string) bool) (newest int64) {
	names, _ := fs.Glob(FS, "*.sql") // the pattern is valid
	for _, name := range names {
		text, _ := fs.ReadFile(FS, name) // it is there
		number, _, _ := strings.Cut(name, "_")
		if n, _ := strconv.ParseInt(number, 10, 64); is(string(text)) { // a test holds the names to their form
			newest = max(newest, n)
		}
	}
	return newest
}
