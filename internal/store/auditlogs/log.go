// Package auditlogs writes and reads the audit log, which records the author of each change.
package auditlogs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
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

// The transaction of a change also writes the entry of the change. If it runs again because its reply was lost, it finds
// nothing to change and writes no second entry.

// RecordSQL writes an entry with the arguments of [RecordArgs].
const RecordSQL = `INSERT INTO audit_log (tenant_id, actor, actor_id, actor_name, action, target, difference) VALUES ($1, $2, $3, $4, $5, $6, $7)`

// Record writes an entry in the transaction of a change. The actor is the actor of the context.
func Record(ctx context.Context, tx pg.Execer, tenant uuid.UUID, action auditlog.Action, target string, d Difference) error {
	_, err := tx.Exec(ctx, RecordSQL, RecordArgs(push.ActorOf(ctx), tenant, action, target, d)...)
	return err
}

// QueueRecord adds the statement of an entry to a batch.
func QueueRecord(b *pgx.Batch, by push.Actor, tenant uuid.UUID, action auditlog.Action, target string, d Difference) {
	b.Queue(RecordSQL, RecordArgs(by, tenant, action, target, d)...)
}

// RecordArgs returns the arguments of [RecordSQL].
func RecordArgs(by push.Actor, tenant uuid.UUID, action auditlog.Action, target string, d Difference) []any {
	return append(ActorArgs(by, tenant), string(action), target, d.Text())
}

// ActorArgs returns the tenant and the actor, the first arguments of [RecordSQL].
func ActorArgs(by push.Actor, tenant uuid.UUID) []any {
	return []any{tenant, string(cmp.Or(by.Type, push.ActorSystem)), zeronull.UUID(by.ID), by.Name}
}

// RecordOnce runs a statement that returns the one row that it changes, and writes the entry of the change, both in
// one transaction. It returns [push.ErrNotFound] if the statement returns no row. It does not repeat the transaction
// if its reply is lost.
func RecordOnce[T any](
	ctx context.Context, db *pg.DB, tenant uuid.UUID, scan pgx.RowToFunc[T], entry func(ctx context.Context, tx pgx.Tx, row T) error, sql string, args ...any,
) (row T, err error) {
	once := func() error {
		return pg.OnConn(ctx, db.Pool, func(c *pgxpool.Conn) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				rows, _ := tx.Query(ctx, sql, args...)
				if row, err = pgx.CollectExactlyOneRow(rows, scan); err != nil {
					return err
				}
				return entry(ctx, tx, row)
			})
		})
	}
	err = db.Within(ctx, db.Changes, tenant, func(inner context.Context) error {
		ctx = inner
		_, parted, err := db.MakePart(ctx, once())
		if parted {
			err = once()
		}
		return pg.Classify(err)
	})
	return row, err
}

// An import has one entry for all of its transactions.

// BeginImport writes the entry of an import, before the import stores the first line.
func (s *Store) BeginImport(ctx context.Context, tenant uuid.UUID, of auditlog.Action) (auditlog.Position, error) {
	none := func(context.Context, pgx.Tx, auditlog.Position) error { return nil }
	return RecordOnce(ctx, s.db, tenant, collectPosition, none, RecordSQL+` RETURNING created_at, id`, RecordArgs(push.ActorOf(ctx), tenant, of, "", nil)...)
}

func collectPosition(row pgx.CollectableRow) (at auditlog.Position, err error) {
	return at, row.Scan(&at.At, &at.ID)
}

// EndImport adds the numbers of created and updated lines, and of canceled pushes, to the entry of an import.
func (s *Store) EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error {
	d := Difference{}
	d.Show("created", nil, created)
	d.Show("updated", nil, updated)
	d.Show("canceled", nil, canceled)
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, pg.In(`UPDATE {audit_log} SET difference = $4 WHERE tenant_id = $1 AND created_at = $2 AND id = $3`, "{audit_log}", s.db.Layouts.Log().At(at.At)),
			tenant, at.At, at.ID, d.Text())
		return err
	})
}

// AuditLog returns up to limit entries of a tenant from before a position, the newest first. The zero position means
// the newest entry. A page has fewer entries if they are large or if few match the filter; the list continues at Next
// all the same.
func (s *Store) AuditLog(ctx context.Context, tenant uuid.UUID, f auditlog.Filter, before auditlog.Position, limit int) (page auditlog.Page, err error) {
	if f.Until.IsZero() {
		f.Until = time.Now().Add(pg.ClockGap) // later than any clock
	}
	if before.At.IsZero() || before.At.After(f.Until) {
		before = auditlog.Position{At: f.Until} // the zero id is before all others
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		r := logRead{c: c, tenant: tenant, f: f, before: before, limit: limit, left: pg.MaxScanned}
		tables := s.db.Layouts.Log().Between(f.From, before.At)
		slices.Reverse(tables)
		for some := range slices.Chunk(tables, pg.TablesAtOnce) {
			if more, err := r.in(ctx, some); err != nil {
				return err
			} else if !more {
				break
			}
		}
		page = r.page
		return addNames(ctx, c, tenant, page.Entries)
	})
	return page, err
}

// addNames sets the names of keys and users in entries.
func addNames(ctx context.Context, c pg.Reader, tenant uuid.UUID, entries []auditlog.Entry) error {
	names := map[uuid.UUID]string{}
	target := func(e *auditlog.Entry) (id uuid.UUID) {
		if of := push.ActorType(e.Action.Type()); of == push.ActorKey || of == push.ActorUser {
			id, _ = uuid.Parse(e.Target)
		}
		return id
	}
	for i := range entries {
		names[entries[i].Actor.ID], names[target(&entries[i])] = "", ""
	}
	ids := make([]uuid.UUID, 0, len(names))
	for id := range names {
		ids = append(ids, id)
	}
	rows, _ := c.Query(ctx, `
		SELECT id, name FROM api_keys WHERE tenant_id = $1 AND id = ANY ($2::uuid[])
		UNION ALL SELECT id, CASE name WHEN '' THEN email ELSE name END FROM users WHERE tenant_id = $1 AND id = ANY ($2::uuid[])`, tenant, ids)
	var (
		id   uuid.UUID
		name string
	)
	_, err := pgx.ForEachRow(rows, []any{&id, &name}, func() error { names[id] = name; return nil })
	for i := range entries {
		e := &entries[i]
		e.ActorName, e.TargetName = cmp.Or(e.Actor.Name, names[e.Actor.ID]), names[target(e)]
	}
	return err
}

// logRead reads a page of the log.
type logRead struct {
	c      pg.Reader
	tenant uuid.UUID
	f      auditlog.Filter
	before auditlog.Position
	limit  int
	left   int // number of rows that it may still scan
	bytes  int // size of the page
	page   auditlog.Page
}

// in reads from tables until the page is full, the scan limit is reached, or no rows are left. more is true in the
// last case.
func (r *logRead) in(ctx context.Context, tables []string) (more bool, err error) {
	for {
		sql, args, filtered := r.query(tables)
		scan := r.limit + 1 - len(r.page.Entries)
		if filtered {
			scan = min(r.left, 10*(r.limit+1))
		}
		rows, _ := r.c.Query(ctx, sql, append(args, scan)...)
		scanned, full, err := r.collect(rows)
		switch {
		case err != nil || full:
			return false, err
		case scanned < scan:
			return true, nil
		}
		if r.left -= scanned; r.left <= 0 {
			r.page.Next = &r.before
			return false, nil
		}
	}
}

// query returns the statement for the next rows before the position. Each row reports whether it matches the filter.
// The filter by target uses an index.
func (r *logRead) query(tables []string) (sql string, args []any, filtered bool) {
	args = []any{r.tenant, r.before.At, r.before.ID, r.f.From}
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	bounds, fits := []string{`l.tenant_id = $1`, `(l.created_at, l.id) < ($2, $3)`, `l.created_at >= $4`}, []string{`true`}
	if r.f.Target != "" {
		bounds = append(bounds, `l.target = `+arg(r.f.Target))
	}
	if r.f.ActorType != "" {
		fits = append(fits, `l.actor = `+arg(string(r.f.ActorType)))
	}
	if r.f.Actor != uuid.Nil {
		fits = append(fits, `l.actor_id IS NOT DISTINCT FROM `+arg(r.f.Actor))
	}
	if r.f.Action != "" {
		fits = append(fits, `l.action = `+arg(string(r.f.Action)))
	}
	return fmt.Sprintf(`
		SELECT l.id, l.created_at, l.actor, l.actor_id, l.actor_name, l.action, l.target, CASE WHEN f.fits THEN l.difference END, f.fits
		FROM %s l CROSS JOIN LATERAL (SELECT %s AS fits) f WHERE %s ORDER BY l.created_at DESC, l.id DESC LIMIT $%d`,
		pg.In("{audit_log}", "{audit_log}", tables...), strings.Join(fits, ` AND `), strings.Join(bounds, ` AND `), len(args)+1), args, len(fits) > 1
}

// collect adds the matching entries to the page and moves the position. full reports that the page is full; then it
// has set where the next page begins.
func (r *logRead) collect(rows pgx.Rows) (scanned int, full bool, err error) {
	defer rows.Close()
	for rows.Next() {
		var (
			e    auditlog.Entry
			fits bool
		)
		if err := rows.Scan(&e.ID, &e.At, (*string)(&e.Actor.Type), (*zeronull.UUID)(&e.Actor.ID), &e.Actor.Name, (*string)(&e.Action), &e.Target, (*[]byte)(&e.Difference), &fits); err != nil {
			return scanned, false, err
		}
		if fits && (len(r.page.Entries) == r.limit || r.bytes >= pg.MaxPageBytes) {
			last := r.page.Entries[len(r.page.Entries)-1]
			r.page.Next = &auditlog.Position{At: last.At, ID: last.ID}
			return scanned, true, nil
		}
		scanned, r.before = scanned+1, auditlog.Position{At: e.At, ID: e.ID}
		if fits {
			r.page.Entries = append(r.page.Entries, e)
			r.bytes += len(e.Difference) + 500
		}
	}
	return scanned, false, rows.Err()
}
