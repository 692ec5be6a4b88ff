package migrations

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// large are the tables that have many rows, and that requests write to.
const large = `(pushes|live|sends|webhook_deliveries|recipients)\b`

var (
	comment      = regexp.MustCompile(`(?m)--.*$`)
	function     = regexp.MustCompile(`(?s)-- \+goose StatementBegin.*?-- \+goose StatementEnd`)
	made         = regexp.MustCompile(`(?i)CREATE TABLE (\w+)`)
	index        = regexp.MustCompile(`(?i)CREATE (?:UNIQUE )?INDEX\s[^;]*?\sON ` + large)
	withoutTx    = regexp.MustCompile(`\A-- \+goose NO TRANSACTION\n`)
	concurrent   = regexp.MustCompile(`(?is)\A\s*CREATE (UNIQUE )?INDEX CONCURRENTLY IF NOT EXISTS \w+\s[^;]*;\s*\z`)
	fill         = regexp.MustCompile(`(?s)-- \+goose StatementBegin.*?\nDO \$\$.*\bFOR (?:SHARE|UPDATE)\b.*\bCOMMIT;.*?-- \+goose StatementEnd`)
	parts        = regexp.MustCompile(`(?s)-- \+goose StatementBegin.*?\nDO \$\$.*\bCREATE INDEX IF NOT EXISTS \w+ ON ONLY \w+ .*\bCOMMIT;.*\bCREATE INDEX %I ON %I .*\bATTACH PARTITION %I.*\bCOMMIT;.*?-- \+goose StatementEnd`)
	dropsParts   = regexp.MustCompile(`(?is)\A\s*DROP INDEX IF EXISTS \w+;\s*\z`)
	nothingAtAll = regexp.MustCompile(`\A\s*\z`)
	analyze      = regexp.MustCompile(`(?i)\A\s*ANALYZE \w+;\s*\z`)
	dropsIndex   = regexp.MustCompile(`(?is)\A\s*DROP INDEX CONCURRENTLY IF EXISTS \w+;\s*\z`)
	rewritten    = regexp.MustCompile(`(?im)^\s*(UPDATE|DELETE FROM|VACUUM FULL|CLUSTER) ` + large)
	altered      = regexp.MustCompile(`(?i)\bALTER TABLE (?:ONLY )?` + large + `([^;]*)`)
	slowToAlter  = regexp.MustCompile(`(?i)ALTER COLUMN \w+ (SET DATA )?TYPE|SET NOT NULL|ADD COLUMN[^,]*?\b(DEFAULT\s+[^,]*\(|NOT NULL\s*(,|$)|REFERENCES|UNIQUE|PRIMARY KEY|GENERATED)`)
)

// firstUnderLoad is the first migration that may meet large tables.
const firstUnderLoad = "0002"

// wrong lists the statements of a migration that delay requests, or cannot be repeated.
func wrong(text string) (faults []string) {
	up, down, both := strings.Cut(text, "-- +goose Down")
	up = comment.ReplaceAllString(function.ReplaceAllString(up, ""), "")
	down = comment.ReplaceAllString(down, "")
	if !both {
		faults = append(faults, "it has no Down part")
	}
	if withoutTx.MatchString(text) {
		builds, drops := concurrent.MatchString(up) && dropsIndex.MatchString(down), dropsIndex.MatchString(up) && concurrent.MatchString(down)
		fills := fill.MatchString(text) && analyze.MatchString(up)
		divides := parts.MatchString(text) && nothingAtAll.MatchString(up) && dropsParts.MatchString(down)
		if !builds && !drops && !fills && !divides {
			faults = append(faults, "without a transaction it must be one CREATE INDEX CONCURRENTLY IF NOT EXISTS one way, and one DROP INDEX CONCURRENTLY IF EXISTS the other; "+
				"or one DO block that fills a table from rows that it locks FOR SHARE or FOR UPDATE, with a COMMIT after each portion, and then an ANALYZE; "+
				"or one DO block that makes an index ON ONLY a table, and then one on each partition, with a COMMIT after each, one way, and one DROP INDEX IF EXISTS the other")
		}
		return faults
	}
	if strings.Contains(strings.ToUpper(text), "CONCURRENTLY") {
		faults = append(faults, "its first line must be -- +goose NO TRANSACTION")
	}
	ours := map[string]bool{}
	for _, m := range made.FindAllStringSubmatch(up, -1) {
		ours[m[1]] = true
	}
	for _, m := range index.FindAllStringSubmatch(up, -1) {
		if !ours[m[1]] {
			faults = append(faults, "it builds an index on "+m[1]+" while all writes wait: build it concurrently, in a file of its own")
		}
	}
	if found := rewritten.FindString(up); found != "" {
		faults = append(faults, found+": it goes over all rows under a lock")
	}
	tables := map[string]bool{}
	for _, m := range altered.FindAllStringSubmatch(up, -1) {
		tables[strings.ToLower(m[1])] = true
		if found := slowToAlter.FindString(m[2]); found != "" {
			faults = append(faults, found+": it goes over all rows under a lock")
		}
	}
	if len(tables) > 1 {
		faults = append(faults, "it locks several large tables: one file for each")
	}
	return faults
}

// TestMigrations reads every migration. Migrations beside running programs delay none of their requests. Migrations that drop
// parts of the previous release come last: sendquota migrate stops before them without --contract.
func TestMigrations(t *testing.T) {
	names, err := fs.Glob(FS, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	contracting := ""
	for _, name := range names {
		text, err := fs.ReadFile(FS, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range wrong(string(text)) {
			if name >= firstUnderLoad {
				t.Errorf("%s: %s", name, fault)
			}
		}
		switch {
		case Contracts(string(text)):
			contracting = name
		case contracting != "":
			t.Errorf("%s: it stands behind %s, which contracts the schema", name, contracting)
		}
	}
}

// TestWrong: wrong finds each forbidden statement, and accepts allowed ones.
func TestWrong(t *testing.T) {
	const up, down, alone = "-- +goose Up\n", "\n-- +goose Down\nSELECT;\n", "-- +goose NO TRANSACTION\n"
	for text, want := range map[string]int{
		up + "ALTER TABLE pushes ADD COLUMN a text;" + down:                                                                                                   0,
		up + "ALTER TABLE pushes ADD COLUMN a text NOT NULL DEFAULT '', ADD COLUMN b int;" + down:                                                             0,
		up + "CREATE TABLE t (id uuid);\nCREATE INDEX t_id ON t (id);" + down:                                                                                 0,
		up + "ALTER TABLE pushes ADD CONSTRAINT c CHECK (a > 0) NOT VALID;" + down:                                                                            0,
		alone + up + "-- What for.\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON pushes (a) WHERE b;\n-- +goose Down\nDROP INDEX CONCURRENTLY IF EXISTS i;\n": 0,
		alone + up + "DROP INDEX CONCURRENTLY IF EXISTS i;\n-- +goose Down\nCREATE INDEX CONCURRENTLY IF NOT EXISTS i ON pushes (a);\n":                       0,

		alone + up + "-- +goose StatementBegin\nDO $$ BEGIN LOOP INSERT INTO t SELECT FROM pushes FOR SHARE; COMMIT; END LOOP; END $$;\n-- +goose StatementEnd\nANALYZE t;" + down: 0,
		alone + up + "-- +goose StatementBegin\nDO $$ BEGIN INSERT INTO t SELECT FROM pushes FOR SHARE; END $$;\n-- +goose StatementEnd\nANALYZE t;" + down:                        1,
		alone + up + "-- +goose StatementBegin\nDO $$ BEGIN INSERT INTO t SELECT FROM pushes; COMMIT; END $$;\n-- +goose StatementEnd\nANALYZE t;" + down:                          1,

		alone + up + "-- +goose StatementBegin\nDO $$ BEGIN\nCREATE INDEX IF NOT EXISTS i ON ONLY sends (a); COMMIT; LOOP EXECUTE format('CREATE INDEX %I ON %I (a)', b, c); EXECUTE format('ALTER INDEX i ATTACH PARTITION %I', b); COMMIT; END LOOP; END $$;\n-- +goose StatementEnd\n-- +goose Down\nDROP INDEX IF EXISTS i;\n": 0,
		alone + up + "-- +goose StatementBegin\nDO $$ BEGIN\nCREATE INDEX IF NOT EXISTS i ON ONLY sends (a); COMMIT; LOOP EXECUTE format('CREATE INDEX %I ON %I (a)', b, c); EXECUTE format('ALTER INDEX i ATTACH PARTITION %I', b); END LOOP; END $$;\n-- +goose StatementEnd\n-- +goose Down\nDROP INDEX IF EXISTS i;\n":         1,

		up + "SELECT;": 1,
		up + "CREATE INDEX i ON pushes (a);" + down:                                                                                             1,
		up + "CREATE UNIQUE INDEX IF NOT EXISTS i\n  ON pushes (a);" + down:                                                                     1,
		up + "CREATE INDEX CONCURRENTLY i ON t (a);\nCREATE TABLE t ();" + down:                                                                 1,
		alone + up + "CREATE INDEX CONCURRENTLY i ON pushes (a);\n-- +goose Down\nDROP INDEX CONCURRENTLY IF EXISTS i;\n":                       1,
		alone + up + "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON pushes (a); SELECT;\n-- +goose Down\nDROP INDEX CONCURRENTLY IF EXISTS i;\n": 1,
		alone + up + "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON pushes (a);\n-- +goose Down\nDROP INDEX i;\n":                                1,
		alone + up + "ALTER TABLE pushes ADD COLUMN a text;" + down:                                                                             1,
		up + "UPDATE pushes SET a = 1;" + down:                                                                                                  1,
		up + "ALTER TABLE pushes ALTER COLUMN a TYPE bigint;" + down:                                                                            1,
		up + "ALTER TABLE pushes ADD COLUMN a uuid DEFAULT gen_random_uuid();" + down:                                                           1,
		up + "ALTER TABLE pushes ADD COLUMN a text NOT NULL;" + down:                                                                            1,
		up + "ALTER TABLE pushes ADD COLUMN a int; ALTER TABLE sends ADD COLUMN a int;" + down:                                                  1,
	} {
		if got := wrong(text); len(got) != want {
			t.Errorf("%s: %q, want %d", text, got, want)
		}
	}
}
