// Package recipients keeps tenants' descriptions of their recipients, and erases recipients.
package recipients

import (
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/bulk"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store keeps descriptions of recipients.
type Store struct {
	db        *pg.DB
	terms     *terms.Store
	pushes    *pushes.Store
	attempts  *attempts.Store
	campaigns *campaigns.Store
	bulk      *bulk.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, terms *terms.Store, pushes *pushes.Store, attempts *attempts.Store, campaigns *campaigns.Store, bulk *bulk.Store) *Store {
	return &Store{db: db, terms: terms, pushes: pushes, attempts: attempts, campaigns: campaigns, bulk: bulk}
}
