package testenv

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/seal"
	"github.com/sendquota/sendquota/internal/store"
)

// Stores are stores with one configuration, each with a database of its own. A test has one to itself while it runs,
// and the next test gets it empty. That is faster than a new database, whose connections begin with empty caches.
//
// A test that changes the schema, or leaves goroutines running, takes a database of its own.
type Stores struct {
	Config store.Config // unset time-outs default to the shared store's

	mu   sync.Mutex
	free []sharedDatabase
}

// Take returns an empty, migrated database for this test alone, and its store. Its configuration must not be changed.
func (s *Stores) Take(t T) (url string, st *store.Store) {
	t.Helper()
	d, err := s.take()
	Check(t, err)
	Finally(t, func() error {
		if t.Failed() {
			return nil // other users may still be connected
		}
		ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
		defer cancel()
		err := connected(ctx, d.url, func(c *pgx.Conn) error { _, err := c.Exec(ctx, emptySQL); return err })
		if err == nil {
			s.mu.Lock()
			s.free = append(s.free, d)
			s.mu.Unlock()
		}
		return err
	})
	return d.url, d.store
}

func (s *Stores) take() (sharedDatabase, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if last := len(s.free) - 1; last >= 0 {
		d := s.free[last]
		s.free = s.free[:last]
		return d, nil
	}
	p, err := servers.postgres()
	if err != nil {
		return sharedDatabase{}, err
	}
	return p.open(s.Config)
}

// emptySQL deletes the rows of tests: TRUNCATE takes a hundred times as long. It keeps the rows of the migrations.
const emptySQL = `DO $$ DECLARE name text; BEGIN
	PERFORM set_config('application_name', 'sendquota', true); -- Forge follows only others
	FOR name IN SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
		AND relname NOT IN ('sendquota_version', 'installation', 'partitioning', 'lanes', 'audit_pass', 'channel_changes')
		ORDER BY relname = 'tenants', relname IN ('users', 'schedules') -- others refer to them
	LOOP EXECUTE format('DELETE FROM %I', name); END LOOP;
	UPDATE lanes SET owner = NULL, owned_until = '-infinity' WHERE owner IS NOT NULL;
	UPDATE installation SET pauses_version = pauses_version + 1 WHERE pauses_version > 0; -- stores keep the pauses of a version
	UPDATE audit_pass SET owner = NULL, owned_until = '-infinity', state = NULL, last = NULL WHERE owner IS NOT NULL OR state IS NOT NULL OR last IS NOT NULL;
END $$`

// SealKey is the key of programs and stores in tests for sealing secrets.
const SealKey = "c2VuZHF1b3RhIHRlc3RzIHNlYWwgYnkgdGhpcyBrZXk="

// Sealer returns a sealer with SealKey.
func Sealer() *seal.Sealer {
	s, err := seal.New(SealKey)
	if err != nil {
		panic(err) // the constant is wrong; any test would show it
	}
	return s
}
