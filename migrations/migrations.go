// Package migrations embeds the SQL files that make and change the schema. They are applied in the order of their
// numbers by pg.Migrate.
package migrations

import (
	"embed"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// FS holds the files NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS

// Newest returns the number of the newest migration.
func Newest() int64 { return slices.Max(numbers(func(string) bool { return true })) }

// Needed returns the numbers of the migrations that programs need, in order. Migrations that contract the schema may follow.
func Needed() []int64 { return numbers(func(text string) bool { return !Contracts(text) }) }

var contract = regexp.MustCompile(`(?m)^-- contract: `)

// Contracts reports whether a migration drops parts that only programs of the previous release use. These must be
// stopped. Such a migration has a line that begins with "-- contract:".
func Contracts(text string) bool { return contract.MatchString(text) }

// numbers returns the numbers of the migrations of a kind, in order.
func numbers(is func(text string) bool) (numbers []int64) {
	names, _ := fs.Glob(FS, "*.sql") // the pattern is valid
	for _, name := range names {
		text, _ := fs.ReadFile(FS, name) // the file exists
		number, _, _ := strings.Cut(name, "_")
		if n, _ := strconv.ParseInt(number, 10, 64); is(string(text)) { // a test checks the form of the names
			numbers = append(numbers, n)
		}
	}
	return numbers
}
