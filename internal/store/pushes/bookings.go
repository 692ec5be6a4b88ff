package pushes

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// bookingState returns an expression for the state of a booking p as callers see it.
func bookingState(shard string) string {
	return `CASE WHEN p.status = 'scheduled' AND p.send_at <= statement_timestamp() AND ` + underWay(shard) + ` THEN 'sending' ELSE p.status END`
}

// bookingsSQL reads the bookings of many recipients in one table.
var bookingsSQL = `
	SELECT q.i, p.id, p.send_at, ` + bookingState(`ANY ($7::smallint[])`) + `{kinds}
	FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[], $6::bigint[])
		WITH ORDINALITY AS q (recipient_key, tenant_id, recipient, since, until, most, i)
	CROSS JOIN LATERAL (
		SELECT id, send_at, status, tenant_id, recipient_key, recipient, channel, category FROM {pushes} p
		WHERE p.shard = ANY ($7::smallint[]) AND recipient_key = q.recipient_key AND freed = false AND status IN ('scheduled', 'sent')
			AND send_at > q.since AND send_at < q.until
		LIMIT q.most -- also keeps the next line from choosing another index
	) p
	WHERE p.tenant_id = q.tenant_id AND p.recipient IN (q.recipient, '') -- or erased
	ORDER BY q.i, p.send_at, p.id`

// withKinds adds the kinds of the pushes to a statement that reads bookings, if they are needed.
func withKinds(sql string, kinds bool) string {
	columns := ""
	if kinds {
		columns = ", p.channel, p.category"
	}
	return strings.Replace(sql, "{kinds}", columns, 1)
}

// spansIn names the spans that may have bookings in a table.
type spansIn struct {
	table string
	spans []int
	kinds bool // one of them needs kinds
}

// tablesOf returns the tables that may have bookings of the spans, ordered by time, each with its spans.
func tablesOf(spans []span, pushes pg.Parts) (reads []spansIn) {
	at := map[string]int{}
	for i, sp := range spans {
		if sp.known {
			continue
		}
		for _, table := range pushes.Between(sp.view.From, sp.view.Until) {
			n, known := at[table]
			if !known {
				n, at[table] = len(reads), len(reads)
				reads = append(reads, spansIn{table: table})
			}
			reads[n].kinds = reads[n].kinds || sp.kinds
			reads[n].spans = append(reads[n].spans, i)
		}
	}
	slices.SortFunc(reads, func(a, b spansIn) int { return cmp.Compare(a.table, b.table) })
	return reads
}

// queue adds the query for the bookings to a batch.
func (r spansIn) queue(b *pgx.Batch, spans []span) {
	keys := make([]int64, len(r.spans))
	for i, at := range r.spans {
		keys[i] = spans[at].key
	}
	of := func(value func(sp *span) any) pg.Column {
		return pg.Column{Length: len(r.spans), At: func(i int) any { return value(&spans[r.spans[i]]) }}
	}
	b.Queue(pg.In(withKinds(bookingsSQL, r.kinds), "{pushes}", r.table),
		keys,
		of(func(sp *span) any { return (*pg.UUIDValue)(&sp.recipient.Tenant) }),
		of(func(sp *span) any { return (*pg.TextValue)(&sp.recipient.ID) }),
		of(func(sp *span) any { return (*pg.TimeValue)(&sp.view.From) }),
		of(func(sp *span) any { return (*pg.TimeValue)(&sp.view.Until) }),
		of(func(sp *span) any { return sp.limit() }),
		pg.ShardsOf(keys...))
}

// limit returns the row limit of the span's read; null reads all.
func (sp *span) limit() any {
	if sp.most == 0 {
		return nil
	}
	return int64(sp.most) + 1
}

// collect reads the result of the query that queue added, and appends the bookings to held, one list per span.
func (r spansIn) collect(res pgx.BatchResults, spans []span, held [][]booking.Held) error {
	rows, _ := res.Query()
	var (
		i    int
		b    booking.Held
		kind quota.Kind
	)
	columns := []any{&i, &b.ID, &b.At, (*string)(&b.Status)}
	if r.kinds {
		columns = append(columns, &kind.Channel, &kind.Category)
	}
	_, err := pgx.ForEachRow(rows, columns, func() error {
		at := r.spans[i-1]
		if b.Kind = (quota.Kind{}); spans[at].kinds {
			b.Kind = kind
		}
		held[at] = append(held[at], b)
		return nil
	})
	return err
}

func bookingsOf(held []booking.Held) []quota.Booking {
	if len(held) == 0 {
		return nil
	}
	bookings := make([]quota.Booking, len(held))
	for i, h := range held {
		bookings[i] = h.Booking
	}
	return bookings
}

// inOrderSQL reads the first bookings of one recipient in one table by time, in the order of the index.
var inOrderSQL = `
	SELECT p.id, p.send_at, ` + bookingState(`ANY ($7::smallint[])`) + `{kinds}
	FROM (
		SELECT id, send_at, status, tenant_id, recipient_key, recipient, channel, category FROM {pushes} p
		WHERE p.shard = ANY ($7::smallint[]) AND recipient_key = $1 AND freed = false AND status IN ('scheduled', 'sent') AND send_at > $4 AND send_at < $5
		ORDER BY send_at LIMIT $6
	) p
	WHERE p.tenant_id = $2 AND p.recipient IN ($3, '') -- or erased
	ORDER BY p.send_at, p.id LIMIT $6`

// Bookings returns a recipient's bookings strictly between from and until, by time. It sees what was committed before
// the call, and takes no lock. If there are more than most bookings, it returns only those before complete; otherwise
// complete is until. With kinds, each booking has its kind.
func (s *Store) Bookings(
	ctx context.Context, r quota.Recipient, from, until time.Time, most int, kinds bool,
) (held []booking.Held, complete time.Time, err error) {
	err = s.inOrder(ctx, r, from, until, most, kinds, func() { held = nil }, func(b *booking.Held) { held = append(held, *b) })
	if complete = until; len(held) > most {
		complete = held[most].At
		held = slices.DeleteFunc(held, func(b booking.Held) bool { return !b.At.Before(complete) })
	}
	return held, complete, err
}

// Timeline returns what [Store.Bookings] does for at most [booking.MaxRead] bookings, leaving out the pushes in without.
// It takes a third of the memory.
func (s *Store) Timeline(
	ctx context.Context, r quota.Recipient, from, until time.Time, without map[uuid.UUID]bool, kinds bool,
) (line quota.Timeline, complete time.Time, err error) {
	read := 0
	err = s.inOrder(ctx, r, from, until, booking.MaxRead, kinds, func() { read, line = 0, quota.Timeline{} }, func(b *booking.Held) {
		if read++; read > booking.MaxRead {
			complete = b.At
		}
		if !without[b.ID] {
			line = line.Insert(b.Booking)
		}
	})
	if read <= booking.MaxRead {
		return line, until, err
	}
	return line.Before(complete), complete, err
}

// inOrder passes the first most+1 bookings to add. It calls start at the beginning, and again if the read is repeated.
func (s *Store) inOrder(
	ctx context.Context, r quota.Recipient, from, until time.Time, most int, kinds bool, start func(), add func(*booking.Held),
) error {
	return s.db.Read(ctx, r.Tenant, func(ctx context.Context, c pg.Reader) error {
		start()
		if err := s.CheckTables(ctx, c, from, until); err != nil {
			return err
		}
		left, key := most+1, push.RecipientKey(r.Tenant, r.ID)
		for _, table := range s.db.Layouts.Pushes().Between(from, until) {
			rows, _ := c.Query(ctx, pg.In(withKinds(inOrderSQL, kinds), "{pushes}", table), key, r.Tenant, r.ID, from, until, left, pg.ShardsOf(key))
			var b booking.Held
			columns := []any{&b.ID, &b.At, (*string)(&b.Status)}
			if kinds {
				columns = append(columns, &b.Kind.Channel, &b.Kind.Category)
			}
			_, err := pgx.ForEachRow(rows, columns, func() error {
				add(&b)
				left--
				return nil
			})
			if err != nil || left == 0 {
				return err
			}
		}
		return nil
	})
}

// coverAll reports whether p covers all partitions that the spans need.
func coverAll(p pg.Parts, spans []span) bool {
	return !slices.ContainsFunc(spans, func(sp span) bool { return !sp.known && !p.Covers(sp.view.From, sp.view.Until) })
}

// ClockMargin bounds how far Postgres' clock may drift from the local clock between two reads of it.
const ClockMargin = time.Minute

// shareable reports whether a draft can be decided in a transaction that tenants share: no other transaction holds a
// lock that the draft needs, and all bookings that it needs were read.
func (r *BookingRead) shareable(d booking.Draft) bool {
	r.View(d.Recipient())
	return !slices.Contains(r.Crowded, d.Recipient()) && (len(r.locked) == 0 ||
		!slices.Contains(r.locked, push.RecipientKey(d.Push.Tenant, d.Push.Recipient)) &&
			(d.Push.IdempotencyID == uuid.Nil || !slices.Contains(r.locked, requestLock(d.Push.IdempotencyID))))
}

// View returns the bookings of a recipient. Close returns the error if they cannot be read; nothing that is decided
// after that is written.
func (r *BookingRead) View(recipient quota.Recipient) *quota.View {
	i := r.at[recipient]
	for r.err == nil && r.read <= i {
		r.err = r.next()
	}
	return &r.spans[i].view
}

// Done drops a recipient's view after the last draft that needs it.
func (r *BookingRead) Done(recipient quota.Recipient) {
	bulkhead.Yield()
	sp := &r.spans[r.at[recipient]]
	if sp.uses--; sp.uses == 0 && !sp.keep {
		sp.view = quota.View{}
	}
}

// next reads the next portion.
func (r *BookingRead) next() error {
	asked := r.asked[0]
	r.asked = r.asked[1:]
	spans := r.spans[r.read : r.read+asked.spans]
	held := make([][]booking.Held, len(spans))
	for _, read := range asked.reads {
		if err := read.collect(r.Results, spans, held); err != nil {
			return err
		}
	}
	for n := range spans {
		sp := &spans[n]
		if !sp.known {
			sp.view.Timeline = quota.NewTimeline(bookingsOf(held[n]))
		}
		if sp.most > 0 && len(held[n]) > sp.most {
			r.Crowded = append(r.Crowded, sp.recipient)
		}
	}
	r.read += len(spans)
	return nil
}

// Close ends the exchange with Postgres, and returns the first error of the read.
func (r *BookingRead) Close() error {
	if err := r.Results.Close(); r.err == nil {
		r.err = err
	}
	return r.err
}
