package storetest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// pooledStore is a store and two plain connections that one test uses at a time. It is cleared for the next test, because
// opening another one takes longer than most tests.
type pooledStore struct {
	url   string
	store *store.Store
	db    *pgx.Conn
	watch *pgx.Conn
	parts []string // partitions of an own database, before tests
	shape string   // and all else of it
	leave chan struct{}
}

// storePool holds the idle stores, in the shared database or each in a database of its own.
type storePool struct {
	own  bool
	mu   sync.Mutex
	free []*pooledStore
	made errgroup.Group
}

var (
	sharedStores, ownStores = storePool{}, storePool{own: true}
	forge                   sync.Once // in the shared database
)

// take gives a test a store until it ends.
func (s *storePool) take(t testing.TB) *pooledStore {
	t.Helper()
	s.mu.Lock()
	var d *pooledStore
	if n := len(s.free); n > 0 {
		d, s.free = s.free[n-1], s.free[:n-1]
	}
	s.mu.Unlock()
	if d == nil {
		d = s.open(t)
	}
	t.Cleanup(func() {
		if t.Failed() || d.clear(context.Background()) != nil {
			close(d.leave)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.free = append(s.free, d)
	})
	return d
}

// open makes a store, which is closed when leave is closed.
func (s *storePool) open(t testing.TB) *pooledStore {
	t.Helper()
	made, failed := make(chan *pooledStore, 1), make(chan error, 1)
	s.made.Go(func() error {
		err := testenv.Run(context.Background(), func(t testenv.T) {
			d := &pooledStore{leave: make(chan struct{})}
			if s.own {
				d.url = testenv.Postgres(t)
				testenv.Forge(t, d.url)
			} else {
				d.url = testenv.SharedPostgres(t)
				forge.Do(func() { testenv.Forge(t, d.url) })
			}
			d.store, d.db, d.watch = OpenURL(t, d.url, store.Config{}), testenv.Connect(t, d.url), testenv.Connect(t, d.url)
			if s.own {
				var err error
				d.parts, err = d.partitions(t.Context())
				testenv.Check(t, err)
				testenv.Check(t, d.db.QueryRow(t.Context(), shapeSQL).Scan(&d.shape))
			}
			made <- d
			<-d.leave
		})
		failed <- err
		return err
	})
	select {
	case d := <-made:
		return d
	case err := <-failed:
		t.Fatal(err)
		return nil
	}
}

// close closes all idle stores, and waits for them.
func (s *storePool) close() error {
	s.mu.Lock()
	for _, d := range s.free {
		close(d.leave)
	}
	s.free = nil
	s.mu.Unlock()
	return s.made.Wait()
}

// clear resets a store and its connections. It returns an error if a test has changed more than rows, or left something under way.
func (d *pooledStore) clear(ctx context.Context) error {
	for _, c := range []*pgx.Conn{d.db, d.watch} {
		if c.IsClosed() || c.PgConn().TxStatus() != 'I' {
			return errors.New("a connection is not at rest")
		}
		if err := c.DeallocateAll(ctx); err != nil {
			return err
		}
		if _, err := c.Exec(ctx, `DISCARD ALL`); err != nil {
			return err
		}
	}
	if err := rest(ctx, d.store); err != nil || d.shape == "" {
		return err
	}
	parts, err := d.partitions(ctx)
	if err != nil {
		return err
	}
	more := slices.DeleteFunc(parts, func(name string) bool { return slices.Contains(d.parts, name) })
	if len(more) > 20 {
		return errors.New("to drop the partitions takes longer than to make another database")
	}
	for _, name := range more {
		if _, err := d.db.Exec(ctx, `DROP TABLE `+name); err != nil {
			return err
		}
	}
	var shape string
	if err := d.db.QueryRow(ctx, shapeSQL).Scan(&shape); err != nil {
		return err
	}
	if shape != d.shape {
		return errors.New("the database is another one")
	}
	_, err = d.db.Exec(ctx, clearSQL)
	return err
}

// partitions returns the names of all partitions.
func (d *pooledStore) partitions(ctx context.Context) ([]string, error) {
	rows, _ := d.db.Query(ctx, `SELECT inhrelid::regclass::text FROM pg_inherits JOIN pg_class p ON p.oid = inhparent AND p.relkind = 'p'`)
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// shapeSQL describes all of a database but the rows that clearSQL deletes: a changed row has a later transaction.
const shapeSQL = `SELECT concat_ws(' ',
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_class WHERE relpersistence <> 't'),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_attribute WHERE attrelid > 16383),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_constraint),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_trigger),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_proc),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM pg_policy),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM sendquota_version),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM installation),
	(SELECT concat(count(*), '/', max(xmin::text::bigint)) FROM partitioning),
	(SELECT count(*) FROM lanes), (SELECT count(*) FROM audit_pass), (SELECT count(*) FROM channel_changes),
	(SELECT count(*) FROM pg_db_role_setting JOIN pg_database d ON d.oid = setdatabase AND datname = current_database()))`

// clearSQL empties the tables with rows. It fails if something is under way, and after a test that wrote very many
// rows.
const clearSQL = `DO $$ DECLARE
		part text;
		n int;
		total int := 0;
	BEGIN
		IF EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend' AND xact_start IS NOT NULL AND pid <> pg_backend_pid()) THEN
			RAISE 'something is under way';
		END IF;
		SET LOCAL session_replication_role = replica; -- no triggers
		FOR part IN SELECT oid::regclass FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
				AND relname NOT IN ('sendquota_version', 'installation', 'partitioning', 'lanes', 'audit_pass', 'channel_changes') AND pg_relation_size(oid) > 0 LOOP
			EXECUTE 'DELETE FROM ' || part;
			GET DIAGNOSTICS n = ROW_COUNT;
			total := total + n;
		END LOOP;
		IF total > 3000 THEN
			RAISE '% rows', total;
		END IF;
		UPDATE lanes SET owner = DEFAULT, owned_until = DEFAULT WHERE owned_until > '-infinity' OR owner IS NOT NULL;
		UPDATE installation SET pauses_version = pauses_version + 1 WHERE pauses_version > 0; -- stores keep the pauses of a version
		UPDATE audit_pass SET owner = DEFAULT, owned_until = DEFAULT, state = DEFAULT, last = DEFAULT;
	END $$`

// rest makes a store forget the active tenants and the known partitions. It fails if the store is closed, or uses a
// connection.
func rest(ctx context.Context, st *store.Store) error {
	if st.Pool.Stat().AcquiredConns()+st.ReadPool.Stat().AcquiredConns() > 0 {
		return errors.New("a connection is in use")
	}
	st.Layouts.Forget()
	st.Neighbours = bulkhead.Neighbours[uuid.UUID]{}
	return errors.Join(st.Pool.Ping(ctx), st.ReadPool.Ping(ctx))
}
