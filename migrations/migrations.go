// Package migrations embeds the SQL files that make and change the schema. They are applied in the order of their
// numbers by store.Migrate.
package migrations

import (
	"embed"
	"io/fs"
	"strconv"
	"strings"
)

// FS holds the files NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS

// Newest returns the number of the newest migration.
func Newest() int64 {
	names, _ := fs.Glob(FS, "*.sql") // the pattern is valid
	var newest int64
	for _, name := range names {
		number, _, _ := strings.Cut(name, "_")
		n, _ := strconv.ParseInt(number, 10, 64) // a test holds the names to their form
		newest = max(newest, n)
	}
	return newest
}
