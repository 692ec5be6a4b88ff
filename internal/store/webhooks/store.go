// Package webhooks keeps webhooks and their deliveries.
package webhooks

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Store keeps webhooks.
type Store struct {
	db *pg.DB
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB) *Store {
	return &Store{db: db}
}
