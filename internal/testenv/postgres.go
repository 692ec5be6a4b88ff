package testenv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store"
)

// cleanupTime bounds the work after a test, whose context is over.
const cleanupTime = time.Minute

// postgres is a server with a migrated database to copy from.
type postgres struct {
	server   *devstack.Server
	admin    string // URL of a database that is not for tests
	template string
	shared   func() (sharedDatabase, error) // for all tests of this process
	mu       sync.Mutex
	dropped  []string // what close drops, if the server stays
}

// sharedDatabase is a database with a store. Tests share its connections as well.
type sharedDatabase struct {
	url   string
	store *store.Store
}

// StoreTimeout is the time-out of transactions and reads in the shared store: longer than the busiest machine needs.
const StoreTimeout = time.Minute

// Postgres returns the URL of a new, migrated database for this test alone.
// It is dropped when the test ends, and open connections with it. A test that
// needs no more than a tenant of its own takes SharedPostgres.
func Postgres(t T) string {
	t.Helper()
	return servers.Postgres(t)
}

// SharedPostgres returns the URL of the migrated database that the tests of this
// process share. Each of them makes a tenant in it, and asserts nothing about others.
func SharedPostgres(t T) string {
	t.Helper()
	return servers.SharedPostgres(t)
}

// SharedStore returns the store of the shared database, which all tests of this process use. A test that measures or
// closes connections opens a store of its own.
func SharedStore(t T) *store.Store {
	t.Helper()
	p, err := servers.postgres()
	Check(t, err)
	d, err := p.shared()
	Check(t, err)
	return d.store
}

// Postgres returns the URL of a new, migrated database for this test alone. It is
// dropped when the test ends.
func (s *Servers) Postgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	name, u, err := p.create(ctx)
	Check(t, err)
	Finally(t, func() error { kept.close(u); return p.drop(name) })
	return u
}

// SharedPostgres returns the URL of a migrated database that stays until Close.
func (s *Servers) SharedPostgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	d, err := p.shared()
	Check(t, err)
	return d.url
}

// PostgresServer returns the server itself.
func (s *Servers) PostgresServer(t T) *devstack.Server {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	return p.server
}

// newPostgres finds or starts a server with a template in it.
func newPostgres(c devstack.Config) (*postgres, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var err error
	if c.Seed, err = newSeed(); err != nil {
		return nil, err
	}
	server, err := devstack.StartPostgres(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &postgres{server: server, template: c.Seed.Name}
	if p.admin, err = withDatabase(server.URL, "postgres"); err == nil {
		err = kept.add(context.Background(), p.admin)
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	p.shared = sync.OnceValues(func() (sharedDatabase, error) {
		d, err := p.open(store.Config{})
		if err == nil {
			err = devstack.Exec(context.Background(), d.url, ownSQL)
		}
		return d, err
	})
	if server.Private() {
		return p, nil // the Seed made it
	}
	if err := c.Seed.Make(ctx, server.URL); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

// open creates a database that stays until close, and its store, with time-outs for a busy machine.
func (p *postgres) open(c store.Config) (d sharedDatabase, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var name string
	if name, d.url, err = p.create(ctx); err != nil {
		return d, err
	}
	p.mu.Lock()
	p.dropped = append(p.dropped, name)
	p.mu.Unlock()
	c.Timeout, c.ReadTimeout, c.Sealer = cmp.Or(c.Timeout, StoreTimeout), cmp.Or(c.ReadTimeout, StoreTimeout), cmp.Or(c.Sealer, Sealer())
	d.store, err = store.Open(context.Background(), d.url, c)
	return d, err
}

// create copies the template.
func (p *postgres) create(ctx context.Context) (name, url string, err error) {
	name = newName()
	if err = p.administer(ctx, "CREATE DATABASE "+name+" TEMPLATE "+p.template+" STRATEGY file_copy"); err != nil {
		return name, "", err
	}
	if url, err = withDatabase(p.server.URL, name); err == nil {
		err = kept.add(context.Background(), url)
	}
	return name, url, err
}

// administer runs a statement that concerns whole databases.
func (p *postgres) administer(ctx context.Context, statement string) error {
	return connected(ctx, p.admin, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

func (p *postgres) close() error {
	var err error
	if !p.server.Private() { // else they go with the server
		for _, name := range p.dropped {
			err = errors.Join(err, p.drop(name))
		}
	}
	kept.close(p.admin)
	return errors.Join(err, p.server.Close())
}

func (p *postgres) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	return p.administer(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// newName returns the name of a new database.
func newName() string { return "sendquota_test_" + strings.ToLower(rand.Text()[:12]) }

// withDatabase returns the URL of another database of the same server. A URL may also have Postgres' other form,
// "host=… dbname=…", where the last word wins.
func withDatabase(server, name string) (string, error) {
	if !strings.Contains(server, "://") {
		return server + " dbname=" + name, nil
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("URL of Postgres: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

// forgeSQL makes the table live follow manual changes of pushes in tests. It ignores changes by the service.
const forgeSQL = `
	CREATE OR REPLACE FUNCTION forged() RETURNS trigger LANGUAGE plpgsql AS $$
	BEGIN
		IF TG_OP = 'UPDATE' THEN
			IF OLD.status = 'scheduled' AND NEW.status = 'scheduled' THEN
				UPDATE live SET recipient_key = NEW.recipient_key, shard = NEW.recipient_key & 255, send_at = NEW.send_at, expires_at = NEW.expires_at, tenant_id = NEW.tenant_id,
					channel = NEW.channel, plan = NEW.plan, attempts = attempts + NEW.attempts - OLD.attempts,
					next_at = CASE WHEN token IS NULL THEN NEW.next_at ELSE next_at END
				WHERE recipient_key = OLD.recipient_key AND push_id = OLD.id;
				RETURN NULL;
			END IF;
		END IF;
		IF TG_OP <> 'INSERT' THEN
			DELETE FROM live WHERE recipient_key = OLD.recipient_key AND push_id = OLD.id;
		END IF;
		IF TG_OP <> 'DELETE' THEN
			INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, attempts, phase, rank, push_id, tenant_id, channel, shard)
			SELECT NEW.recipient_key, NEW.send_at, NEW.next_at, NEW.expires_at, NEW.plan, NEW.attempts, 2, 2, NEW.id, NEW.tenant_id, NEW.channel, NEW.recipient_key & 255
			WHERE NEW.status = 'scheduled' ON CONFLICT DO NOTHING;
		END IF;
		RETURN NULL;
	END $$;
	CREATE OR REPLACE FUNCTION forged_shard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.shard := NEW.recipient_key & 255; RETURN NEW; END $$;
	CREATE OR REPLACE TRIGGER forged_shard BEFORE INSERT OR UPDATE ON pushes
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged_shard();
	CREATE OR REPLACE TRIGGER forged_shard BEFORE INSERT OR UPDATE ON sends
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged_shard();
	CREATE OR REPLACE TRIGGER forged AFTER INSERT OR UPDATE OR DELETE ON pushes
		FOR EACH ROW WHEN (current_setting('application_name') <> 'sendquota') EXECUTE FUNCTION forged()`

// Forge lets a test change the table pushes of a database by hand, and makes workers see it. It ignores statements on
// connections of the service.
func Forge(t T, databaseURL string) {
	t.Helper()
	Exec(t, databaseURL, forgeSQL)
}
