package pushes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// List returns up to limit of a tenant's pushes after a position, by send time and id, without their sends. It returns
// fewer if the pushes are large or few match the filter; Next is set then, too, if there may be more.
func (s *Store) List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (page push.Page, err error) {
	from, until := f.From, f.Until
	if after.SendAt.After(from) {
		from = after.SendAt
	}
	if until.IsZero() {
		until = booking.EndOfTime
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		if err := s.CheckTables(ctx, c, from, until); err != nil {
			return err
		}
		page = push.Page{}
		scanned, bytes := 0, 0
		for tables := range slices.Chunk(s.db.Layouts.Pushes().Between(from, until), pg.TablesAtOnce) {
			left := limit - len(page.Pushes)
			part, n, err := readList(ctx, c, f, tenant, after, max(left, 1), max(pg.MaxScanned-scanned, limit+1), tables)
			if err != nil {
				return err
			}
			if left == 0 && len(part.Pushes) > 0 { // the page is full, and later tables have more pushes
				page.Next = new(positionOf(page.Pushes[limit-1]))
				return nil
			}
			page.Pushes, page.Next = append(page.Pushes, part.Pushes...), part.Next
			bytes += sizeOf(part.Pushes)
			scanned += n
			if n := len(page.Pushes); page.Next == nil && bytes >= pg.MaxPageBytes {
				page.Next = new(positionOf(page.Pushes[n-1]))
			}
			if page.Next != nil {
				return nil
			}
		}
		return nil
	})
	return page, err
}

// sizeOf estimates how many bytes the pushes take on a page.
func sizeOf(pushes []push.Push) (n int) {
	for _, p := range pushes {
		n += len(p.Message) + len(p.Rendering) + len(p.Metadata) + 500
	}
	return n
}

// readList reads a page from some tables. It scans few pushes at first, then more, up to most, until it knows whether more
// than a page of them match the filter.
func readList(
	ctx context.Context, c pg.Reader, f push.Filter, tenant uuid.UUID, after push.Position, limit, most int, tables []string,
) (page push.Page, scanned int, err error) {
	for _, scan := range []int{2 * limit, 10 * limit, most} {
		scan = min(scan, most)
		var last push.Position
		q := ListQuery(f, tenant, after, limit, scan, tables)
		rows, _ := c.Query(ctx, q.SQL(), q.Args...)
		var seen pg.PageCounts
		page.Pushes, page.Next, seen, err = pg.CollectPage(rows, q, &last, []any{&last.SendAt, &last.ID}, positionOf, ScanPush)
		scanned = seen.Scanned
		if err != nil || scanned < scan || seen.Matching > len(page.Pushes) || scan == most {
			break
		}
	}
	return page, scanned, err
}

// CheckTables returns [pg.ErrStale] if there may be tables of pushes between two times that this process does not know.
func (s *Store) CheckTables(ctx context.Context, c pg.Reader, from, until time.Time) error {
	pushes := s.db.Layouts.Pushes()
	if pushes.Covers(from, until) {
		return nil
	}
	rows, _ := c.Query(ctx, pg.CompleteSQL, pushes.Names())
	complete, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[bool])
	if err == nil && !complete {
		err = pg.ErrStale
	}
	return err
}

func positionOf(p push.Push) push.Position { return push.Position{SendAt: p.SendAt, ID: p.ID} }

// listed describes a source of pushes p for a list: its order, and the formats of send times and ids in it.
type listed struct{ source, fits, position, at, id string }

var (
	inPushes = listed{`{pushes} p`, `p.recipient <> ''`, `p.send_at, p.id`, `%s`, `%s`} // without erased pushes
	// The index of live stores both in another form than the primary key.
	inLive = listed{
		`(SELECT *, push_id AS id, send_at AT TIME ZONE 'UTC' AS utc, uuid_send(push_id) AS bytes FROM live) p`, `true`,
		`p.utc, p.bytes`, `%s::timestamptz AT TIME ZONE 'UTC'`, `uuid_send(%s::uuid)`,
	}
)

// NotEnded stands in a filter for the pushes that are scheduled or being sent.
const NotEnded push.Status = "not ended"

// FreedSQL is a condition for freed pushes p, whose bookings no longer count. It is written as in the index pushes_freed.
const FreedSQL = `p.freed::int = 1`

// conditions returns the conditions of a filter on a push p that no index answers. open: p is a row of live. arg adds an
// argument to the statement, and returns its placeholder.
func conditions(f push.Filter, open bool, shard string, tables []string, arg func(value any) string) (fits []string) {
	if f.Channel != "" {
		fits = append(fits, `p.channel = `+arg(f.Channel))
	}
	if f.Campaign != uuid.Nil {
		fits = append(fits, `p.campaign_id = `+arg(f.Campaign))
	}
	switch {
	case open && f.Category != "":
		fits = append(fits, fmt.Sprintf(`EXISTS (SELECT FROM (%s) w WHERE w.category = %s)`, pushOfRow("p", tables, ""), arg(f.Category)))
	case f.Category != "":
		fits = append(fits, `p.category = `+arg(f.Category))
	}
	switch {
	case open && f.Reason != "":
		fits = append(fits, fmt.Sprintf(`EXISTS (SELECT FROM (%s) w WHERE w.last_error = %s)`, pushOfRow("p", tables, ""), arg(f.Reason)))
	case f.Reason != "":
		fits = append(fits, `p.last_error = `+arg(f.Reason))
	}
	switch {
	case f.Status == "", open && f.Status == NotEnded:
	case f.Status == NotEnded:
		fits = append(fits, `p.status = `+arg(string(push.Scheduled)))
	case open && f.Status == push.Sending:
		fits = append(fits, `p.token IS NOT NULL`, fmt.Sprintf(`EXISTS (SELECT FROM (%s) w WHERE w.recipient <> '')`, pushOfRow("p", tables, "")))
	case open:
		fits = append(fits, `p.token IS NULL`)
	case f.Status == push.Sending:
		fits = append(fits, underWay(shard))
	case f.Status == push.Scheduled:
		fits = append(fits, `p.status = `+arg(string(f.Status)), `NOT `+underWay(shard))
	default:
		fits = append(fits, `p.status = `+arg(string(f.Status)))
	}
	return fits
}

// ListQuery returns the query for a page of pushes that match a filter, after a position. It scans up to most pushes.
// The tenant's index returns pushes in order; so does the recipient's, which keeps freed pushes apart. Pushes that have
// not ended are read from live, and failed, expired or canceled ones from the index of freed pushes, so that the scan
// does not pass everything that was sent.
func ListQuery(f push.Filter, tenant uuid.UUID, after push.Position, limit, most int, tables []string) pg.PageQuery {
	table := pg.In("{pushes}", "{pushes}", tables...)
	q := pg.PageQuery{
		Limit: limit, Columns: heldColumns, Position: "p.send_at, p.id", Order: "p.send_at, p.id", Backward: "p.send_at DESC, p.id DESC",
		Size: `octet_length(p.message::text) + coalesce(octet_length(p.rendering::text), 0) + coalesce(octet_length(p.metadata::text), 0) + 500`,
	}
	arg := func(value any) string {
		q.Args = append(q.Args, value)
		return fmt.Sprintf("$%d", len(q.Args))
	}
	shard, itsShard, key := "p.shard", "", push.RecipientKey(tenant, f.Recipient)
	if f.Recipient != "" { // all pushes of a recipient are in one shard
		shard = `ANY (` + arg(pg.ShardsOf(key)) + `::smallint[])`
		itsShard = shard
	}
	q.Join = joinAttempt(shard) + joinPause
	open := f.Recipient == "" && (f.Status == push.Scheduled || f.Status == push.Sending || f.Status == NotEnded)
	from, until := f.From, f.Until
	if begin, end, some := pg.WeeksOfPushes.Span(tables); open && some { // live is one table for all weeks
		if begin.After(from) {
			from = begin
		}
		if until.IsZero() || end.Before(until) {
			until = end
		}
	}
	if from.After(after.SendAt) { // with two lower bounds, Postgres would begin at one and test each row for the other
		after = push.Position{SendAt: from} // no id is as low as the zero one
	}
	l := inPushes
	if open {
		l = inLive
	}
	bounds := []string{`p.tenant_id = ` + arg(tenant), fmt.Sprintf(`(`+l.position+`) > (`+l.at+`, `+l.id+`)`, arg(after.SendAt), arg(after.ID))}
	if !until.IsZero() {
		first, _, _ := strings.Cut(l.position, ",")
		bounds = append(bounds, fmt.Sprintf(first+` < `+l.at, arg(until)))
	}
	if f.Recipient == "" && (f.Status == push.Failed || f.Status == push.Expired || f.Status == push.Canceled) {
		bounds = append(bounds, FreedSQL)
	}
	fits := append([]string{l.fits}, conditions(f, open, shard, tables, arg)...)
	if q.Scan = limit + 1; len(fits) > 1 {
		q.Scan = min(most, pg.MaxScanned)
	}
	columns := "p.*" // every scanned row is on the page
	if open || len(fits) > 1 {
		columns, q.Item = "p.id, p.send_at", pushOfRow("s", tables, itsShard)
	}
	found := fmt.Sprintf(`SELECT %s, %s AS fits FROM %s WHERE %s`, columns, strings.Join(fits, ` AND `), strings.ReplaceAll(l.source, `{pushes}`, table), strings.Join(bounds, ` AND `))
	if f.Recipient != "" {
		found = fmt.Sprintf(`SELECT p.* FROM (VALUES (false), (true)) AS f (freed) CROSS JOIN LATERAL (
			%s AND %s = %s AND p.recipient_key = %s AND p.recipient = %s AND p.freed = f.freed ORDER BY p.send_at, p.id LIMIT %d) p`,
			found, "p.shard", shard, arg(key), arg(f.Recipient), q.Scan)
	}
	q.Scanned = fmt.Sprintf(`%s ORDER BY %s LIMIT %d`, found, l.position, q.Scan)
	return q
}

// pushOfRow returns a query for the push with the id and the send time of a row. shard is an expression for its shard;
// empty: unknown. The query searches only the table of the send time, because each search descends an index that grows
// with its table.
func pushOfRow(row string, tables []string, shard string) string {
	var each []string
	for i, table := range tables {
		one := fmt.Sprintf(`SELECT * FROM %[2]s w WHERE w.id = %[1]s.id AND w.send_at = %[1]s.send_at`, row, table)
		if begin, end, some := pg.WeeksOfPushes.Span(tables[i : i+1]); some {
			one += fmt.Sprintf(` AND %[1]s.send_at >= '%[2]s' AND %[1]s.send_at < '%[3]s'`, row, begin.Format(time.RFC3339), end.Format(time.RFC3339))
		}
		if shard != "" {
			one += ` AND w.shard = ` + shard
		}
		each = append(each, one)
	}
	return strings.Join(each, " UNION ALL ")
}
