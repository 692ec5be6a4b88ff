// Package schedules keeps recurring schedules and their occurrences.
package schedules

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store keeps schedules.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}
