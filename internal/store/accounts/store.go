// Package accounts keeps tenants, their caps, API keys, users and sessions.
package accounts

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store keeps tenants, keys, users and sessions.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}
