// Package migrations embeds the SQL files that make and change the schema.
// They are applied in the order of their numbers by store.Migrate.
package migrations

import "embed"

// FS holds the files NNNN_name.sql.
//
//go:embed *.sql
var FS embed.FS
