package pg

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/sendquota/sendquota/migrations"
)

// migrationTurn is one migrator's turn to work on a database. It is goose's session locker: goose calls it before it
// looks at what is to be applied, on the connection that it then works with.
type migrationTurn struct {
	cfg     MigrateConfig
	pool    *pgxpool.Pool
	sources []*goose.Source

	// Of the migration that is next.
	file           string
	began          time.Time // its first try
	blockers, told string    // whom it waited for last, and whom of it was told
	stopWatching   func()
}

// turnPause is how long a migrator waits before it asks again whether it is its turn. It does not wait within Postgres:
// the statement would be a transaction that an index which is built concurrently waits for.
const turnPause = 250 * time.Millisecond

// SessionLock waits for the turn, and prepares the connection for the next migration.
func (t *migrationTurn) SessionLock(ctx context.Context, c *sql.Conn) error {
	for first := true; ; first = false {
		var ours bool
		if err := c.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, lock.DefaultLockID).Scan(&ours); err != nil {
			return err
		}
		if ours {
			break
		}
		if first {
			t.cfg.Tell("another migrator is at work; this one waits for it")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(turnPause):
		}
	}
	if err := t.prepare(ctx, c); err != nil {
		return errors.Join(err, t.SessionUnlock(context.WithoutCancel(ctx), c))
	}
	return nil
}

// SessionUnlock ends the turn.
func (t *migrationTurn) SessionUnlock(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, lock.DefaultLockID)
	return err
}

// unusedQuery reports whether no program can have been at work in the database, and none is connected.
const unusedQuery = `SELECT NOT EXISTS (SELECT FROM pushes)
	AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota')`

// prepare sets how long the next migration may wait for a lock, removes what an earlier try of it left behind, and
// begins to watch what it waits for.
//
// A migration without a transaction builds indexes concurrently. It waits for transactions that began before it and
// blocks no writes, so it may wait for as long as there is time: to give up costs the work that was done.
func (t *migrationTurn) prepare(ctx context.Context, c *sql.Conn) error {
	text, err := t.next(ctx, c)
	if err != nil || text == "" {
		return err
	}
	if migrations.Contracts(text) && !t.cfg.Contract {
		var unused bool
		if err := c.QueryRowContext(ctx, unusedQuery).Scan(&unused); err != nil || !unused {
			return cmp.Or(err, errContract)
		}
	}
	if t.began.IsZero() {
		t.began = time.Now()
	}
	wait := lockTime
	if withoutTransaction.MatchString(text) {
		wait = t.cfg.Wait
	}
	var pid int
	err = c.QueryRowContext(ctx, `SELECT pg_backend_pid(), set_config('statement_timeout', '0', false), set_config('lock_timeout', $1, false)`,
		strconv.FormatInt(wait.Milliseconds(), 10)).Scan(&pid, new(string), new(string))
	if err != nil {
		return err
	}
	t.stopWatching = t.watch(ctx, pid)
	return t.removeUnfinished(ctx, c, text)
}

// next returns the migration that goose will apply; empty: none. A database whose schema was contracted may lack one with a lower
// number, that came with a later version and expands it. The table is there: goose makes it before it asks for
// a turn.
func (t *migrationTurn) next(ctx context.Context, c *sql.Conn) (text string, err error) {
	for _, s := range t.sources { // in their order
		var applied bool
		if err := c.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+versionTable+` WHERE version_id = $1 AND is_applied)`, s.Version).Scan(&applied); err != nil {
			return "", err
		}
		if !applied {
			t.file = s.Path
			content, err := fs.ReadFile(t.cfg.Files, s.Path)
			up, _, _ := strings.Cut(string(content), "-- +goose Down")
			return up, err
		}
	}
	return "", nil
}

var (
	withoutTransaction = regexp.MustCompile(`(?m)^-- \+goose NO TRANSACTION`)
	concurrentIndex    = regexp.MustCompile(`(?i)\bINDEX\s+CONCURRENTLY\s+IF\s+NOT\s+EXISTS\s+(\w+)`)
)

// removeUnfinished drops the indexes of a migration that are there and cannot be used: their build was interrupted. It
// runs in this migrator's turn, so no other one builds them now.
func (t *migrationTurn) removeUnfinished(ctx context.Context, c *sql.Conn, text string) error {
	for _, match := range concurrentIndex.FindAllStringSubmatch(text, -1) {
		var unfinished bool
		err := c.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)`, match[1]).Scan(&unfinished)
		if err != nil {
			return err
		}
		if !unfinished {
			continue
		}
		t.cfg.Tell(fmt.Sprintf("%s: removes the index %s, whose build was interrupted", t.file, match[1]))
		if _, err := c.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+pgx.Identifier{match[1]}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// blockersQuery names the sessions that hold a lock which another one waits for, but not their statements.
const blockersQuery = `
SELECT coalesce(string_agg(format('process %s (%s, %s%s)', a.pid, coalesce(nullif(a.application_name, ''), a.backend_type), coalesce(a.state, 'active'),
    ' for ' || date_trunc('second', clock_timestamp() - a.xact_start)::text), ' and ' ORDER BY a.xact_start), ''),
  coalesce(string_agg(a.pid::text, ' ' ORDER BY a.pid), '')
FROM unnest(pg_blocking_pids($1)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid`

// watch tells what a session waits for, once for each, until it is stopped.
func (t *migrationTurn) watch(ctx context.Context, pid int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(turnPause):
			}
			var names, pids string
			if err := t.pool.QueryRow(ctx, blockersQuery, pid).Scan(&names, &pids); err != nil || names == "" {
				continue
			}
			t.blockers = names
			if t.told != pids {
				t.told = pids
				t.cfg.Tell(fmt.Sprintf("%s: waits for a lock that is held by %s", t.file, names))
			}
		}
	}()
	return func() { cancel(); <-done }
}
