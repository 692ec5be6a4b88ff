package pg

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Installation returns a name of ten letters and digits that identifies the database. No other database has it, not
// even a copy restored from a dump. known is false until Postgres has answered once; Installation does not wait for
// the answer.
func (s *DB) Installation() (name string, known bool) {
	if name := s.installation.name.Load(); name != nil {
		return *name, true
	}
	if s.installation.asking.CompareAndSwap(false, true) {
		go func() {
			if s.Identify(context.Background()) != nil {
				time.Sleep(200 * time.Millisecond)
			}
			s.installation.asking.Store(false)
		}()
	}
	return "", false
}

// Identify reads the name of the database from Postgres.
func (s *DB) Identify(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return Classify(OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error {
		name, err := InstallationName(ctx, c.Conn())
		if err == nil {
			s.installation.name.Store(&name)
		}
		return err
	}))
}

// Secret returns random bytes that all programs of this database share and that no other database has. It queries
// Postgres once.
func (s *DB) Secret(ctx context.Context) ([]byte, error) {
	if known := s.installation.secret.Load(); known != nil {
		return *known, nil
	}
	var secret []byte
	err := s.Read(ctx, uuid.Nil, func(ctx context.Context, c Reader) error {
		rows, _ := c.Query(ctx, `SELECT secret FROM installation`)
		var err error
		secret, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[[]byte])
		return err
	})
	if err != nil {
		return nil, err
	}
	s.installation.secret.Store(&secret)
	return secret, nil
}

// InstallationName returns the name of a database as [DB.Installation] defines it. A copy holds the same row as the
// original, but lives on another server or is another database of the same server. The name includes the server's
// identifier only if the role may read it.
func InstallationName(ctx context.Context, c *pgx.Conn) (string, error) {
	var own, server string
	var may bool
	err := c.QueryRow(ctx, `
		SELECT concat_ws('/', id, (SELECT oid FROM pg_database WHERE datname = current_database())), has_function_privilege('pg_control_system()', 'EXECUTE')
		FROM installation`).Scan(&own, &may)
	if err == nil && may {
		err = c.QueryRow(ctx, `SELECT system_identifier::text FROM pg_control_system()`).Scan(&server)
	}
	if err != nil {
		return "", err
	}
	hash := sha256.Sum256([]byte(own + "/" + server))
	return strings.ToLower(base32.StdEncoding.EncodeToString(hash[:])[:10]), nil
}
