// Package partitions makes the partitions of tables in advance and drops those whose retention has ended.
package partitions

import (
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store makes and drops partitions.
type Store struct {
	db    *pg.DB
	terms *terms.Store
}

// New returns a Store that uses a connection to Postgres.
func New(db *pg.DB, terms *terms.Store) *Store {
	return &Store{db: db, terms: terms}
}
