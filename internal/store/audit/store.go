// Package audit checks that every guarantee holds for the rows in Postgres.
package audit

import (
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store audits the rows.
type Store struct {
	db    *pg.DB
	terms *terms.Store
}

// New returns a Store that uses a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	return &Store{db: db, terms: terms}
}
