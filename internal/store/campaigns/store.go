// Package campaigns stores campaigns and their audiences, and books their recipients in chunks.
package campaigns

import (
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store reads and changes campaigns and their audiences.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store {
	return &Store{db: db, pushes: pushes}
}

// Runs takes the steps of running campaigns, one chunk of recipients at a time.
type Runs struct {
	db        *pg.DB
	terms     *terms.Store
	pushes    *pushes.Store
	campaigns *Store
}

// NewRuns returns a Runs on a connection to Postgres.
func NewRuns(db *pg.DB, terms *terms.Store, pushes *pushes.Store, campaigns *Store) *Runs {
	return &Runs{db: db, terms: terms, pushes: pushes, campaigns: campaigns}
}
