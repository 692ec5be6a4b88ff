package pg_test

import (
	"testing"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/store/pg"
)

// TestUUIDs_Scanned checks how uuids are read: as they are in Postgres, null as no change, and nothing else as a uuid.
func TestUUIDs_Scanned(t *testing.T) {
	t.Parallel()
	db, err := pg.Open(t.Context(), setup(t).URL, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	want := uuid.New()
	var id, unknown, absent uuid.UUID
	absent = want
	if err := db.Pool.QueryRow(t.Context(), `SELECT $1::uuid, $1::uuid::text, NULL::uuid`, want).Scan(&id, &unknown, &absent); err != nil {
		t.Fatal(err)
	}
	if id != want || unknown != want || absent != want {
		t.Errorf("%v, %v, %v, want %v", id, unknown, absent, want)
	}
	if err := db.Pool.QueryRow(t.Context(), `SELECT 1::bigint`).Scan(&id); err == nil {
		t.Errorf("a number was read as %v", id)
	}
	var all []uuid.UUID
	if err := db.Pool.QueryRow(t.Context(), `SELECT $1::uuid[]`, []uuid.UUID{want, uuid.Nil}).Scan(&all); err != nil || len(all) != 2 || all[0] != want {
		t.Errorf("%v, %v", all, err)
	}
}
