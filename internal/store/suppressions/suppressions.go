// Package suppressions keeps the addresses to which tenants' channels send nothing, and cancels what is booked to them.
package suppressions

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/suppression"
)

// Store keeps suppressions.
type Store struct {
	db     *pg.DB
	pushes *pushes.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, pushes *pushes.Store) *Store { return &Store{db, pushes} }

// columns are the columns of an entry, of suppressions s.
const columns = `s.tenant_id, s.channel, s.address, s.reason, s.at, s.until, s.push_id`

// entryColumns returns where to read these columns.
func entryColumns(e *suppression.Entry) []any {
	return []any{&e.Tenant, &e.Channel, &e.Address, (*string)(&e.Reason), &e.At, (*zeronull.Timestamptz)(&e.Until), (*zeronull.UUID)(&e.Push)}
}

// longestWait bounds the wait for other transactions. What these book later is refused when it is due.
const longestWait = 5 * time.Second

// putSQL stores entries. One that has ended begins again; the time of another stays.
const putSQL = `
	INSERT INTO suppressions AS s (tenant_id, channel, address, reason, address_key, until, push_id)
	SELECT $1, n.channel, n.address, n.reason, n.address_key, nullif(n.until, ` + pg.NoTime + `), nullif(n.push_id, ` + pg.NoID + `)
	FROM unnest($2::text[], $3::text[], $4::text[], $5::bigint[], $6::timestamptz[], $7::uuid[]) AS n (channel, address, reason, address_key, until, push_id)
	ON CONFLICT (tenant_id, address, channel, reason) DO UPDATE SET until = EXCLUDED.until, push_id = coalesce(EXCLUDED.push_id, s.push_id),
		at = CASE WHEN s.until <= clock_timestamp() THEN clock_timestamp() ELSE s.at END
	RETURNING ` + columns + `, xmax = 0`

// PutSuppressions stores entries of one tenant, each address, channel and reason once. In the same transaction it cancels the waiting
// pushes to these addresses. Then it waits for transactions that may have booked without seeing the entries, and cancels what these have
// booked. A push that is being sent is not tried again. The results have the order of the entries. With record, it writes an entry of
// the audit log for the first one. The error is [push.ErrNotFound] if the tenant does not exist.
func (s *Store) PutSuppressions(ctx context.Context, tenant uuid.UUID, entries []suppression.Entry, record bool) (stored []suppression.Stored, canceled booking.Canceled, err error) {
	x := &putting{Store: s, tenant: tenant, entries: slices.Clone(entries), record: record}
	for i := range x.entries {
		x.entries[i].Tenant = tenant
	}
	if err := x.mark(ctx); err != nil {
		return nil, booking.Canceled{}, err
	}
	if err := x.put(ctx); err != nil {
		return nil, booking.Canceled{}, err
	}
	if err := x.db.AwaitWriters(ctx, min(x.db.Cfg.Timeout, longestWait)); err != nil {
		return nil, x.canceled, err
	}
	for again := true; again; again = x.more {
		if err := x.cancelAgain(ctx); err != nil {
			return nil, x.canceled, err
		}
	}
	return x.stored, x.canceled, nil
}

// putting stores entries.
type putting struct {
	*Store
	tenant   uuid.UUID
	entries  []suppression.Entry
	record   bool
	stored   []suppression.Stored
	canceled booking.Canceled
	more     bool // one transaction could not cancel all pushes
}

// put stores the entries, and cancels pushes. Until all are canceled none of them is sent, because claims look at the suppressions.
func (x *putting) put(ctx context.Context) error {
	return x.db.Change(ctx, x.tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		x.stored, x.canceled = make([]suppression.Stored, len(x.entries)), booking.Canceled{}
		if _, err := c.Exec(ctx, `begin isolation level read committed`); err != nil {
			return err
		}
		w, err := x.write(ctx, c)
		if err != nil {
			return err
		}
		failpoint.Hit(failpoint.SuppressionStored)
		if _, err = w.cancel(ctx, c, &x.canceled); err != nil {
			return err
		}
		b := &pgx.Batch{}
		if x.record {
			e, d := &x.entries[0], auditlogs.Difference{}
			d.Show("reason", nil, e.Reason)
			if !e.Until.IsZero() {
				d.Show("until", nil, e.Until)
			}
			d.Show("canceled", 0, x.canceled.Pushes)
			auditlogs.QueueRecord(b, push.ActorOf(ctx), x.tenant, auditlog.SuppressionPut, e.Channel, d)
		}
		b.Queue(`commit`)
		return c.SendBatch(ctx, b).Close()
	})
}

// write stores the entries, and reads the waiting pushes to their addresses.
func (x *putting) write(ctx context.Context, c *pgxpool.Conn) (w waiting, err error) {
	at := make(map[suppression.Position]int, len(x.entries))
	var (
		channels, addresses, reasons []string
		until                        []time.Time
		ids                          []uuid.UUID
	)
	w, keys := x.waiting()
	for i := range x.entries {
		e := &x.entries[i]
		at[e.Position()] = i
		channels, addresses, reasons = append(channels, e.Channel), append(addresses, e.Address), append(reasons, string(e.Reason))
		until, ids = append(until, e.Until), append(ids, e.Push)
	}
	b := &pgx.Batch{}
	b.Queue(putSQL, x.tenant, channels, addresses, reasons, keys, until, ids).Query(func(rows pgx.Rows) error {
		var one suppression.Stored
		_, err := pgx.ForEachRow(rows, append(entryColumns(&one.Entry), &one.Created), func() error {
			x.stored[at[one.Position()]] = one
			return nil
		})
		return err
	})
	w.queue(b, keys)
	if err = c.SendBatch(ctx, b).Close(); pg.HasCode(err, pg.ForeignKeyViolation) {
		err = push.ErrNotFound
	}
	return w, err
}

// mark records that the tenant has suppressions. The first time, it waits for the transactions that do not know it.
func (x *putting) mark(ctx context.Context) error {
	first := false
	err := x.db.Change(ctx, x.tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, `UPDATE tenants SET suppresses = true WHERE id = $1 AND NOT suppresses`, x.tenant)
		first = first || tag.RowsAffected() > 0
		return err
	})
	if err != nil || !first {
		return err
	}
	return x.db.AwaitAll(ctx, min(x.db.Cfg.Timeout, longestWait))
}

// cancelAgain cancels pushes that were booked meanwhile, or that an earlier transaction has left.
func (x *putting) cancelAgain(ctx context.Context) error {
	var some booking.Canceled
	err := x.db.Change(ctx, x.tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		some = booking.Canceled{}
		w, keys := x.waiting()
		b := &pgx.Batch{}
		b.Queue(`begin isolation level read committed`)
		w.queue(b, keys)
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		var err error
		if x.more, err = w.cancel(ctx, c, &some); err != nil {
			return err
		}
		_, err = c.Exec(ctx, `commit`)
		return err
	})
	x.canceled.Add(some)
	return err
}

// waiting returns what waits for the addresses, to be read, and the keys of the addresses.
func (x *putting) waiting() (w waiting, keys []int64) {
	w = waiting{Store: x.Store, tenant: x.tenant, channels: make(map[int64]string, len(x.entries)), people: map[person]bool{}}
	for i := range x.entries {
		key := x.entries[i].Key()
		w.channels[key], keys = x.entries[i].Channel, append(keys, key)
	}
	return w, keys
}

// DeleteSuppression removes a tenant's entries for an address on a channel: the one with a reason, or all of them if that is empty. It returns
// their number, or [push.ErrNotFound] if there are none.
func (s *Store) DeleteSuppression(ctx context.Context, tenant uuid.UUID, channel, address string, reason suppression.Reason) (n int64, err error) {
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM suppressions WHERE tenant_id = $1 AND channel = $2 AND address = $3 AND ($4 = '' OR reason = $4)`, tenant, channel, address, string(reason))
			if n = tag.RowsAffected(); err != nil {
				return err
			}
			if n == 0 {
				return push.ErrNotFound
			}
			d := auditlogs.Difference{}
			if reason != "" {
				d.Show("reason", reason, nil)
			}
			return auditlogs.Record(ctx, tx, tenant, auditlog.SuppressionDelete, channel, d)
		})
	})
	return n, err
}

// scanned is the number of entries that one page looks through.
const scanned = 20_000

// Suppressions returns up to limit of a tenant's entries that match a filter, after a position, by address, channel and reason. A page has
// fewer entries if few match; the list continues at Next all the same.
func (s *Store) Suppressions(ctx context.Context, tenant uuid.UUID, f suppression.Filter, after suppression.Position, limit int) (page suppression.Page, err error) {
	from, args := ``, []any{tenant, after.Address, after.Channel, string(after.Reason), f.Channel, string(f.Reason), limit + 1, scanned}
	if f.Address != "" {
		from, args = ` AND address = $9`, append(args, f.Address)
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		page = suppression.Page{}
		var last suppression.Position
		n := 0
		rows, _ := c.Query(ctx, `
			WITH part AS MATERIALIZED (
				SELECT * FROM suppressions WHERE tenant_id = $1 AND (address, channel, reason) > ($2, $3, $4)`+from+` ORDER BY address, channel, reason LIMIT $8
			), matching AS (
				SELECT `+columns+` FROM part s WHERE ($5 = '' OR s.channel = $5) AND ($6 = '' OR s.reason = $6) ORDER BY s.address, s.channel, s.reason LIMIT $7
			)
			SELECT *, 0 FROM matching
			UNION ALL (SELECT `+columns+`, (SELECT count(*)::int FROM part) FROM part s ORDER BY s.address DESC, s.channel DESC, s.reason DESC LIMIT 1)`, args...)
		var e suppression.Entry
		_, err := pgx.ForEachRow(rows, append(entryColumns(&e), &n), func() error {
			if n == 0 {
				page.Entries = append(page.Entries, e)
			} else {
				last = e.Position()
			}
			return nil
		})
		switch {
		case len(page.Entries) > limit:
			page.Entries = page.Entries[:limit]
			page.Next = new(page.Entries[limit-1].Position())
		case n == scanned:
			page.Next = &last
		}
		return err
	})
	return page, err
}
