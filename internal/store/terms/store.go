// Package terms keeps the policies in force and reads what is known of recipients: what every decision starts from.
package terms

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store reads the terms of tenants and recipients.
type Store struct {
	db    *pg.DB
	Known knownTerms // as this process saw them last
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	s := &Store{db: db}
	s.Known.load = s.loadTerms
	return s
}
