package records

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/record"
)

// CampaignRefusals returns up to limit refused recipients of a tenant's campaigns after a position, ordered by the
// time of the decision. If few match the filter, it returns fewer; the list then also continues at Next.
func (s *Store) CampaignRefusals(ctx context.Context, tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, limit int) (page record.RefusalPage, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		scan := limit + 1
		if f.Campaign != uuid.Nil || f.Rule != "" {
			scan = pg.MaxScanned
		}
		sql, args := refusalsQuery(tenant, f, after, scan, limit)
		rows, _ := c.Query(ctx, sql, args...)
		var (
			scanned int
			last    record.RefusalPosition
		)
		page = record.RefusalPage{}
		if scanned, err = collectRefusals(rows, &last, &page); err != nil {
			return err
		}
		switch {
		case len(page.Refusals) > limit:
			page.Refusals = page.Refusals[:limit]
			page.Next = new(refusalPosition(&page.Refusals[limit-1]))
		case scanned == scan:
			page.Next = &last
		}
		return nil
	})
	return page, err
}

func refusalPosition(r *record.Refusal) record.RefusalPosition {
	return record.RefusalPosition{At: r.At, Campaign: r.Campaign, Line: r.Line}
}

// refusalsQuery reads up to scan refusals after a position, and returns those that match, the number that it read,
// and the position of the last one read. If none matches, it returns one row without a refusal. It reads them in
// order along the tenant's index. With a recipient it uses the recipient's index and sorts: a person is in few
// campaigns.
func refusalsQuery(tenant uuid.UUID, f record.RefusalFilter, after record.RefusalPosition, scan, limit int) (sql string, args []any) {
	arg := func(value any) string {
		args = append(args, value)
		return fmt.Sprintf("$%d", len(args))
	}
	if f.From.After(after.At) {
		after = record.RefusalPosition{At: f.From}
	}
	began := arg(after.At)
	bounds := []string{
		`r.outcome IN ('refused', 'opted_out')`, `r.decided_at >= ` + began,
		fmt.Sprintf(`(r.decided_at, r.campaign_id, r.line) > (%s, %s, %s)`, began, arg(after.Campaign), arg(after.Line)),
	}
	fits := []string{`r.recipient <> ''`} // not erased
	if f.Recipient != "" {
		key := push.RecipientKey(tenant, f.Recipient)
		bounds = append(bounds, `r.shard = ANY (`+arg(pg.ShardsOf(key))+`::smallint[])`, `r.recipient_key = `+arg(key))
		fits = append(fits, `r.tenant_id = `+arg(tenant), `r.recipient = `+arg(f.Recipient))
	} else {
		bounds = append(bounds, `r.tenant_id = `+arg(tenant))
	}
	if !f.Until.IsZero() {
		bounds = append(bounds, `r.decided_at < `+arg(f.Until))
	}
	if f.Campaign != uuid.Nil {
		fits = append(fits, `r.campaign_id = `+arg(f.Campaign))
	}
	if f.Rule != "" {
		fits = append(fits, arg(f.Rule)+` = ANY (r.rules)`)
	}
	const order = `decided_at, campaign_id, line`
	return fmt.Sprintf(`
	WITH scanned AS MATERIALIZED (
		SELECT r.*, coalesce(%s, false) AS fits FROM campaign_recipients r WHERE %s ORDER BY r.decided_at, r.campaign_id, r.line LIMIT %d
	), last AS (
		SELECT (SELECT count(*) FROM scanned) AS n, %s FROM scanned ORDER BY decided_at DESC, campaign_id DESC, line DESC LIMIT 1
	)
	SELECT last.*, r.decided_at, r.campaign_id, r.line, r.recipient, c.channel, c.category, r.requested_send_at, r.outcome, r.reason, r.rules, r.conflicts
	FROM last LEFT JOIN LATERAL (SELECT * FROM scanned WHERE fits ORDER BY %s LIMIT %d) r ON true LEFT JOIN campaigns c ON c.id = r.campaign_id
	ORDER BY r.decided_at, r.campaign_id, r.line`, strings.Join(fits, ` AND `), strings.Join(bounds, ` AND `), scan, order, order, limit+1), args
}

func collectRefusals(rows pgx.Rows, last *record.RefusalPosition, page *record.RefusalPage) (scanned int, err error) {
	defer rows.Close()
	for rows.Next() {
		position := []any{&scanned, &last.At, &last.Campaign, &last.Line}
		if rows.RawValues()[len(position)] == nil { // there is no refusal
			if err := rows.Scan(append(position, make([]any, len(rows.RawValues())-len(position))...)...); err != nil {
				return 0, err
			}
			continue
		}
		var (
			r       record.Refusal
			outcome string
		)
		err := rows.Scan(append(position, &r.At, &r.Campaign, &r.Line, &r.Recipient, (*zeronull.Text)(&r.Channel), (*zeronull.Text)(&r.Category),
			(*zeronull.Timestamptz)(&r.RequestedSendAt), &outcome, &r.Reason, &r.Rules, (*[]byte)(&r.Conflicts))...)
		if err != nil {
			return 0, err
		}
		if outcome == string(broadcast.OutcomeOptedOut) {
			r.Reason = cmp.Or(r.Reason, booking.OptedOutReason)
		}
		page.Refusals = append(page.Refusals, r)
	}
	return scanned, rows.Err()
}
