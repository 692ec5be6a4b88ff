// Package records counts and lists what has happened: statistics, sends, refusals, failures, channels.
package records

import (
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// Store reads and writes these records.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}
