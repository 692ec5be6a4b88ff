// Package terms caches the policies in force and reads the descriptions of recipients. Every decision starts from both.
package terms

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store reads the terms of tenants and recipients.
type Store struct {
	db    *pg.DB
	Known knownTerms // as this process last read them
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	s := &Store{db: db}
	s.Known.load = s.loadTerms
	return s
}
