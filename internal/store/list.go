package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// List returns up to limit of a tenant's pushes behind a position, by send time and id, without their sends. It returns
// fewer where they are large, or where few pushes fit the filter: then too the list goes on at Next.
func (s *Store) List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (page push.Page, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		if page, err = readList(ctx, c, listQuery(f, tenant, after, limit, 10*limit)); err == nil && scannedOn(page) {
			page, err = readList(ctx, c, listQuery(f, tenant, after, limit, maxScanned))
		}
		return err
	})
	return page, err
}

func readList(ctx context.Context, c reader, q pageQuery) (page push.Page, err error) {
	var last push.Position
	rows, _ := c.Query(ctx, q.sql(), q.args...)
	page.Pushes, page.Next, err = collectPage(rows, q, &last, []any{&last.SendAt, (*[16]byte)(&last.ID)}, positionOf, scanPush)
	return page, err
}

func positionOf(p push.Push) push.Position { return push.Position{SendAt: p.SendAt, ID: p.ID} }

// scannedOn reports whether a page ends where the scan did, and not with its last push: more may fit behind.
func scannedOn(page push.Page) bool {
	n := len(page.Pushes)
	return page.Next != nil && (n == 0 || *page.Next != positionOf(page.Pushes[n-1]))
}

// listQuery is the page of a filter behind a position, for which at most so many pushes are looked at. Pushes are found
// in their order by the tenant's index, or by the recipient's, which has those apart that gave their places back.
func listQuery(f push.Filter, tenant uuid.UUID, after push.Position, limit, most int) pageQuery {
	q := pageQuery{
		limit: limit, table: "pushes", join: itsLive, columns: pushColumns, position: "p.send_at, p.id", order: "p.send_at, p.id", backward: "p.send_at DESC, p.id DESC",
		size: `octet_length(p.message::text) + coalesce(octet_length(p.metadata::text), 0) + 500`,
	}
	arg := func(value any) string {
		q.args = append(q.args, value)
		return fmt.Sprintf("$%d", len(q.args))
	}
	if f.From.After(after.SendAt) { // of two lower bounds, Postgres would begin at one, and test each row for the other
		after = push.Position{SendAt: f.From} // no id is as low as the zero one
	}
	bounds := []string{`p.tenant_id = ` + arg([16]byte(tenant)), fmt.Sprintf(`(p.send_at, p.id) > (%s, %s)`, arg(after.SendAt), arg([16]byte(after.ID)))}
	if !f.Until.IsZero() {
		bounds = append(bounds, `p.send_at < `+arg(f.Until))
	}
	fits := []string{`true`}
	for column, value := range map[string]string{"channel": f.Channel, "category": f.Category} {
		if value != "" {
			fits = append(fits, `p.`+column+` = `+arg(value))
		}
	}
	switch f.Status {
	case "":
	case push.Sending:
		fits = append(fits, underWay)
	case push.Scheduled:
		fits = append(fits, `p.status = `+arg(string(f.Status)), `NOT `+underWay)
	default:
		fits = append(fits, `p.status = `+arg(string(f.Status)))
	}
	if q.scan = limit + 1; len(fits) > 1 {
		q.scan = min(most, maxScanned)
	}
	found := fmt.Sprintf(`SELECT p.id, p.send_at, %s AS fits FROM pushes p WHERE %s`, strings.Join(fits, ` AND `), strings.Join(bounds, ` AND `))
	if f.Recipient != "" {
		found = fmt.Sprintf(`SELECT p.* FROM (VALUES (false), (true)) AS f (freed) CROSS JOIN LATERAL (
			%s AND p.recipient_key = %s AND p.recipient = %s AND p.freed = f.freed ORDER BY p.send_at, p.id LIMIT %d) p`,
			found, arg(push.RecipientKey(tenant, f.Recipient)), arg(f.Recipient), q.scan)
	}
	q.scanned = fmt.Sprintf(`%s ORDER BY p.send_at, p.id LIMIT %d`, found, q.scan)
	return q
}
