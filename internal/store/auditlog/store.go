// Package auditlog writes and reads the audit log, which records the author of each change.
package auditlog

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store reads the audit log.
type Store struct {
	db *pg.DB
}

// New returns a Store that uses a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}
