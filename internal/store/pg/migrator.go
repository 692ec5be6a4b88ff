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

// MigrateConfig configures [Migrate]. The zero value is useful.
type MigrateConfig struct {
	// Wait limits the retries of a migration while other sessions hold locks that it needs; 0: a minute. The wait does not
	// block requests.
	Wait time.Duration
	// Tell receives a line for everything that a migration waits for; nil: no lines.
	Tell func(line string)
	// Contract also applies migrations that drop what only programs of the previous release use. No such program may be
	// running. A database without pushes and without connected programs does not need it.
	Contract bool
	// Files holds the migrations; nil: the migrations of sendquota.
	Files fs.FS
}

// versionTable lists the applied migrations. The name is our own, because goose's default may belong to another
// application.
const versionTable = "sendquota_version"

// errContract: the next migration contracts the schema, and [MigrateConfig.Contract] is not set.
var errContract = errors.New("it drops what programs of the previous release use")

const (
	// lockTime bounds one wait for a lock of a migration in a transaction. All writes to the table queue behind this
	// wait, so it is short. They proceed during lockPause.
	lockTime  = time.Second
	lockPause = 2 * time.Second
)

// migrator applies migrations to a database while it holds the session lock of migrations. It is goose's session
// locker: goose calls it on its connection before it determines the next migration.
type migrator struct {
	cfg     MigrateConfig
	pool    *pgxpool.Pool
	sources []*goose.Source

	// State of the next migration.
	file         string
	began        time.Time // of its first try
	blockers     string    // names of the sessions that it waited for last
	reported     string    // process ids of the sessions that were last passed to Tell
	stopWatching func()
}

// pollPause is the pause between tries to get the session lock. Waiting inside Postgres would keep a transaction open,
// and a concurrent index build would wait for that transaction.
const pollPause = 250 * time.Millisecond

// SessionLock waits for the session lock and prepares the connection for the next migration.
func (m *migrator) SessionLock(ctx context.Context, c *sql.Conn) error {
	for first := true; ; first = false {
		var ours bool
		if err := c.QueryRowContext(ctx, `SELECT pg_try_advisory_lock($1)`, lock.DefaultLockID).Scan(&ours); err != nil {
			return err
		}
		if ours {
			break
		}
		if first {
			m.cfg.Tell("another migration is running; waiting for it")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pollPause):
		}
	}
	if err := m.prepare(ctx, c); err != nil {
		return errors.Join(err, m.SessionUnlock(context.WithoutCancel(ctx), c))
	}
	return nil
}

// SessionUnlock releases the session lock.
func (m *migrator) SessionUnlock(ctx context.Context, c *sql.Conn) error {
	_, err := c.ExecContext(ctx, `SELECT pg_advisory_unlock($1)`, lock.DefaultLockID)
	return err
}

// unusedQuery reports whether the database has no pushes and no program is connected to it.
const unusedQuery = `SELECT NOT EXISTS (SELECT FROM pushes)
	AND NOT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota')`

// prepare sets the lock timeout of the next migration, removes the remains of an earlier try, and starts to watch the
// sessions that the migration waits for.
//
// A migration without a transaction builds indexes concurrently. It waits for older transactions and blocks no writes.
// So it may wait for the whole time: giving up would lose the work done so far.
func (m *migrator) prepare(ctx context.Context, c *sql.Conn) error {
	text, err := m.next(ctx, c)
	if err != nil || text == "" {
		return err
	}
	if migrations.Contracts(text) && !m.cfg.Contract {
		var unused bool
		if err := c.QueryRowContext(ctx, unusedQuery).Scan(&unused); err != nil || !unused {
			return cmp.Or(err, errContract)
		}
	}
	if m.began.IsZero() {
		m.began = time.Now()
	}
	wait := lockTime
	if withoutTransaction.MatchString(text) {
		wait = m.cfg.Wait
	}
	var pid int
	err = c.QueryRowContext(ctx, `SELECT pg_backend_pid(), set_config('statement_timeout', '0', false), set_config('lock_timeout', $1, false)`,
		strconv.FormatInt(wait.Milliseconds(), 10)).Scan(&pid, new(string), new(string))
	if err != nil {
		return err
	}
	m.stopWatching = m.watch(ctx, pid)
	return m.removeUnfinished(ctx, c, text)
}

// next returns the text of the migration that goose will apply next; empty: none. After the schema was contracted, a
// later version may still add an expanding migration with a lower number. The version table exists: goose creates it
// before it locks.
func (m *migrator) next(ctx context.Context, c *sql.Conn) (text string, err error) {
	for _, s := range m.sources { // in ascending order
		var applied bool
		if err := c.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM `+versionTable+` WHERE version_id = $1 AND is_applied)`, s.Version).Scan(&applied); err != nil {
			return "", err
		}
		if !applied {
			m.file = s.Path
			content, err := fs.ReadFile(m.cfg.Files, s.Path)
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

// removeUnfinished drops the invalid indexes of a migration: their build was interrupted. The session lock ensures
// that no other migrator is building them.
func (m *migrator) removeUnfinished(ctx context.Context, c *sql.Conn, text string) error {
	for _, match := range concurrentIndex.FindAllStringSubmatch(text, -1) {
		var unfinished bool
		err := c.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_index WHERE indexrelid = to_regclass($1) AND NOT indisvalid)`, match[1]).Scan(&unfinished)
		if err != nil {
			return err
		}
		if !unfinished {
			continue
		}
		m.cfg.Tell(fmt.Sprintf("%s: removing the index %s; its build was interrupted", m.file, match[1]))
		if _, err := c.ExecContext(ctx, `DROP INDEX CONCURRENTLY IF EXISTS `+pgx.Identifier{match[1]}.Sanitize()); err != nil {
			return err
		}
	}
	return nil
}

// blockersQuery names the sessions that hold a lock which another session waits for, without their statements.
const blockersQuery = `
SELECT coalesce(string_agg(format('process %s (%s, %s%s)', a.pid, coalesce(nullif(a.application_name, ''), a.backend_type), coalesce(a.state, 'active'),
    ' for ' || date_trunc('second', clock_timestamp() - a.xact_start)::text), ' and ' ORDER BY a.xact_start), ''),
  coalesce(string_agg(a.pid::text, ' ' ORDER BY a.pid), '')
FROM unnest(pg_blocking_pids($1)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid`

// watch reports the sessions that block a session, each set once, until stop is called.
func (m *migrator) watch(ctx context.Context, pid int) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(pollPause):
			}
			var names, pids string
			if err := m.pool.QueryRow(ctx, blockersQuery, pid).Scan(&names, &pids); err != nil || names == "" {
				continue
			}
			m.blockers = names
			if m.reported != pids {
				m.reported = pids
				m.cfg.Tell(fmt.Sprintf("%s: waiting for a lock held by %s", m.file, names))
			}
		}
	}()
	return func() { cancel(); <-done }
}
