package records

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/record"
)

// Sends returns up to limit of a tenant's ended attempts after a position, ordered by start. If few match the filter,
// it returns fewer; the list then also continues at Next.
func (s *Store) Sends(ctx context.Context, tenant uuid.UUID, f record.SendFilter, after record.SendPosition, limit int) (page record.SendPage, err error) {
	if f.Until.IsZero() {
		f.Until = time.Now().Add(s.db.Cfg.Timeout) // later than any clock
	}
	if f.From.After(after.StartedAt) { // with two lower bounds, Postgres scans from one and filters by the other
		after = record.SendPosition{StartedAt: f.From} // every id is above the zero id
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		r := sendsRead{c: c, tenant: tenant, f: f, after: after, limit: limit, left: pg.MaxScanned}
		for tables := range slices.Chunk(s.db.Layouts.Sends().Between(after.StartedAt, f.Until), pg.TablesAtOnce) {
			if more, err := r.in(ctx, tables); err != nil || !more {
				page = r.page
				return err
			}
		}
		page = r.page
		return nil
	})
	return page, err
}

// sendsRead reads a page of attempts.
type sendsRead struct {
	c      pg.Reader
	tenant uuid.UUID
	f      record.SendFilter
	after  record.SendPosition
	limit  int
	left   int // the number of rows left to read
	page   record.SendPage
}

// in reads on in some tables until the page is full or they have no more rows. more reports whether to read on in
// other tables.
func (r *sendsRead) in(ctx context.Context, tables []string) (more bool, err error) {
	for {
		scan := max(r.limit+1-len(r.page.Sends), 0)
		sql, args, filtered := r.query(tables, scan)
		if filtered {
			scan = min(r.left, 10*(r.limit+1))
			sql, args, _ = r.query(tables, scan)
		}
		rows, _ := r.c.Query(ctx, sql, args...)
		scanned, last, err := r.collect(rows)
		if err != nil {
			return false, err
		}
		if len(r.page.Sends) > r.limit {
			r.page.Sends = r.page.Sends[:r.limit]
			end := r.page.Sends[r.limit-1]
			r.page.Next = &record.SendPosition{StartedAt: end.StartedAt, Push: end.Push}
			return false, nil
		}
		if scanned < scan {
			return true, nil
		}
		r.after = last
		if r.left -= scanned; r.left <= 0 {
			r.page.Next = &last
			return false, nil
		}
	}
}

// query reads up to scan attempts after a position, and returns those that match, the number that it read, and the
// position of the last one read. If none matches, it returns one row without an attempt. It reads them in order along
// the tenant's or the recipient's index. filtered reports that the query has a filter, so that many rows may not
// match; otherwise only erased attempts do not.
func (r *sendsRead) query(tables []string, scan int) (sql string, args []any, filtered bool) {
	table, f := pg.In("{sends}", "{sends}", tables...), r.f
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	// A lower bound of started_at alone makes Postgres expect few rows, and then read and sort all of the recipient's.
	bounds := []string{
		fmt.Sprintf(`(s.started_at, s.push_id) > (%s, %s)`, arg(r.after.StartedAt), arg(r.after.Push)), `s.started_at < ` + arg(f.Until),
	}
	fits := []string{`s.recipient <> ''`} // not erased
	if f.Recipient != "" {
		key := push.RecipientKey(r.tenant, f.Recipient)
		bounds = append(bounds, `s.shard = ANY (`+arg(pg.ShardsOf(key))+`::smallint[])`, `s.recipient_key = `+arg(key))
		fits = append(fits, `s.tenant_id = `+arg(r.tenant), `s.recipient = `+arg(f.Recipient))
	} else {
		bounds = append(bounds, `s.tenant_id = `+arg(r.tenant), `s.outcome || '' <> ''`) // the condition of the index, to the letter
	}
	for _, one := range []struct{ column, value string }{{"channel", f.Channel}, {"category", f.Category}, {"outcome", string(f.Outcome)}} {
		if one.value != "" {
			fits, filtered = append(fits, `s.`+one.column+` = `+arg(one.value)), true
		}
	}
	if f.Campaign != uuid.Nil {
		fits, filtered = append(fits, `s.campaign_id = `+arg(f.Campaign)), true
	}
	return fmt.Sprintf(`
	WITH scanned AS MATERIALIZED (
		SELECT s.*, coalesce(%s, false) AS fits FROM %s s WHERE %s ORDER BY s.started_at, s.push_id LIMIT %d
	), last AS (
		SELECT (SELECT count(*) FROM scanned) AS n, started_at, push_id FROM scanned ORDER BY started_at DESC, push_id DESC LIMIT 1
	)
	SELECT last.*, s.push_id, s.attempt, s.recipient, s.channel, s.category, s.campaign_id, s.send_at, s.started_at, s.ended_at, s.outcome, s.provider_message_id, s.error, coalesce(s.segments, 0)
	FROM last LEFT JOIN LATERAL (SELECT * FROM scanned WHERE fits ORDER BY started_at, push_id LIMIT %d) s ON true
	ORDER BY s.started_at, s.push_id`, strings.Join(fits, ` AND `), table, strings.Join(bounds, ` AND `), scan, r.limit+1-len(r.page.Sends)), args, filtered
}

// collect adds the attempts to the page. It returns the number of attempts that the query read, and the position of
// the last one.
func (r *sendsRead) collect(rows pgx.Rows) (scanned int, last record.SendPosition, err error) {
	defer rows.Close()
	for rows.Next() {
		position := []any{&scanned, &last.StartedAt, &last.Push}
		if rows.RawValues()[len(position)] == nil { // there is no attempt
			if err := rows.Scan(append(position, make([]any, len(rows.RawValues())-len(position))...)...); err != nil {
				return 0, last, err
			}
			continue
		}
		var one record.Send
		err := rows.Scan(append(position, &one.Push, &one.Attempt, &one.Recipient, &one.Channel, &one.Category, (*zeronull.UUID)(&one.Campaign),
			(*zeronull.Timestamptz)(&one.SendAt), &one.StartedAt, (*zeronull.Timestamptz)(&one.EndedAt), (*zeronull.Text)(&one.Outcome), &one.ProviderMessageID, &one.Error, &one.Segments)...)
		if err != nil {
			return 0, last, err
		}
		r.page.Sends = append(r.page.Sends, one)
	}
	return scanned, last, rows.Err()
}
