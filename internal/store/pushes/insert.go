package pushes

import (
	"cmp"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/auditlog"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// insertSQL stores pushes in one table, with their rows in live. insertRetriesSQL stores pushes that include retries. The
// row of a retry in live has no campaign, so that a pause or cancel of the campaign does not affect it.
var (
	insertSQL = insertsSQL(strings.NewReplacer("{retry}", "", "{retries}", "", "{campaign}", "campaign_id"))

	insertRetriesSQL = insertsSQL(strings.NewReplacer("{retry}", ", retry_of, retry_first, retry_doubt", "{retries}", ", $21::uuid[], $22::uuid[], $23::bool[]",
		"{campaign}", "CASE WHEN retry_of IS NULL THEN campaign_id END"))
)

func insertsSQL(of *strings.Replacer) string {
	return Tells(of.Replace(insertText), `booked`, scheduled)
}

const insertText = `
	WITH waiting AS (
		INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, bulk, phase, shard, campaign_id)
		SELECT id, tenant_id, recipient_key, channel, send_at, send_at, expires_at, 1, bulk, bulk::int, recipient_key & 255, {campaign}
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $5::text[], $11::timestamptz[], $12::timestamptz[], $14::bool[], $19::uuid[]{retries})
			AS n (id, tenant_id, recipient_key, channel, send_at, expires_at, bulk, campaign_id{retry})
	), booked AS (
		INSERT INTO {pushes} AS p (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata, rendering,
			requested_send_at, send_at, next_at, expires_at, ttl_ms, status, plan, idempotency_id, idempotency_hash, request_id, created_at, updated_at, shard, campaign_id{retry})
		SELECT id, tenant_id, recipient_key, recipient, channel, category, address, message::json, metadata::json, rendering::json,
			requested_send_at, send_at, send_at, expires_at, ttl_ms, 'scheduled', 1, idempotency_id, idempotency_hash, request_id, created_at, created_at, recipient_key & 255, campaign_id{retry}
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::bigint[], $15::uuid[], $16::bytea[], $17::text[], $18::timestamptz[], $19::uuid[], $20::text[]{retries})
			AS n (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata,
				requested_send_at, send_at, expires_at, ttl_ms, idempotency_id, idempotency_hash, request_id, created_at, campaign_id, rendering{retry})
		RETURNING p.id{whole}
	){told}
	SELECT`

// QueueInsert adds the statements that store the granted pushes to a batch.
func QueueInsert(b *pgx.Batch, granted []booking.Grant, pushes pg.Parts) {
	for table, order := range pg.ByTable(granted, func(g booking.Grant) string { return pushes.At(g.Push.SendAt) }) {
		keys := byRecipientKey(granted, order)
		if slices.ContainsFunc(order, func(i int) bool { return granted[i].First != nil }) {
			b.Queue(pg.In(insertRetriesSQL, "{pushes}", table), append(insertArgs(granted, order, keys), retryArgs(granted, order)...)...)
			continue
		}
		b.Queue(pg.In(insertSQL, "{pushes}", table), insertArgs(granted, order, keys)...)
	}
	queueRetried(b, granted, pushes)
	queueAccepted(b, granted)
}

// byRecipientKey sorts order, indexes of grants, by the recipients' keys, and returns the sorted keys. Two indexes begin
// with the key, so Postgres touches their pages in order. Pushes of one recipient stay in their order.
func byRecipientKey(granted []booking.Grant, order []int) (keys []int64) {
	type keyed struct {
		key int64
		at  int
	}
	all := make([]keyed, len(order))
	for i, at := range order {
		p := &granted[at].Push
		all[i] = keyed{push.RecipientKey(p.Tenant, p.Recipient), at}
	}
	slices.SortFunc(all, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at)) })
	keys = make([]int64, len(all))
	for i, k := range all {
		keys[i], order[i] = k.key, k.at
	}
	return keys
}

// insertArgs returns the columns of the grants named by order, one array per column; keys are their recipients' keys.
func insertArgs(granted []booking.Grant, order []int, keys []int64) []any {
	of := func(value func(p *push.Push) any) pg.Column {
		return pg.Column{Length: len(order), At: func(i int) any { return value(&granted[order[i]].Push) }}
	}
	return []any{
		of(func(p *push.Push) any { return (*pg.UUIDValue)(&p.ID) }),
		of(func(p *push.Push) any { return (*pg.UUIDValue)(&p.Tenant) }),
		pg.Column{Length: len(keys), At: func(i int) any { return (*pg.BigintValue)(&keys[i]) }},
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.Recipient) }),
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.Channel) }),
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.Category) }),
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.To) }),
		of(func(p *push.Push) any { return []byte(p.Message) }),
		of(func(p *push.Push) any { return OrNull(p.Metadata) }),
		of(func(p *push.Push) any { return (*pg.TimeValue)(&p.RequestedSendAt) }),
		of(func(p *push.Push) any { return (*pg.TimeValue)(&p.SendAt) }),
		of(func(p *push.Push) any { return (*pg.TimeValue)(&p.ExpiresAt) }),
		of(func(p *push.Push) any { return (*pg.MillisValue)(&p.TTL) }),
		of(func(p *push.Push) any { return p.Bulk }),
		of(func(p *push.Push) any { return uuidOrNull(&p.IdempotencyID) }),
		of(func(p *push.Push) any { return OrNull(p.IdempotencyHash) }),
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.RequestID) }),
		of(func(p *push.Push) any { return (*pg.TimeValue)(&p.CreatedAt) }),
		of(func(p *push.Push) any { return uuidOrNull(&p.Campaign) }),
		of(func(p *push.Push) any { return OrNull(p.Rendering) }),
	}
}

// retryArgs returns the columns that only retries have.
func retryArgs(granted []booking.Grant, order []int) []any {
	of := func(value func(p *push.Push) any) pg.Column {
		return pg.Column{Length: len(order), At: func(i int) any { return value(&granted[order[i]].Push) }}
	}
	return []any{
		of(func(p *push.Push) any { return uuidOrNull(&p.Retry.Of) }),
		of(func(p *push.Push) any { return uuidOrNull(&p.Retry.First) }),
		of(func(p *push.Push) any { return p.Retry.Doubt }),
	}
}

// queueRetried records each granted retry in the first push of its chain, and in the audit log. The first push has ended,
// so its send time, and with it its table, no longer changes.
func queueRetried(b *pgx.Batch, granted []booking.Grant, pushes pg.Parts) {
	for i := range granted {
		p, first := &granted[i].Push, granted[i].First
		if first == nil {
			continue
		}
		b.Queue(pg.In(`UPDATE {pushes} p SET retry_latest = $2 WHERE p.shard = ANY ($3::smallint[]) AND p.id = $1`, "{pushes}", pushes.At(first.SendAt)),
			first.ID, p.ID, pg.ShardsOf(push.RecipientKey(p.Tenant, p.Recipient)))
		d := auditlog.Difference{}
		d.Show("retry", nil, p.ID)
		d.Show("send_at", nil, p.SendAt)
		auditlog.QueueRecord(b, granted[i].By, p.Tenant, push.ActPushRetry, p.Retry.Of.String(), d)
	}
}

// uuidOrNull returns the id, or null for [uuid.Nil].
func uuidOrNull(id *uuid.UUID) any {
	if *id == uuid.Nil {
		return nil
	}
	return (*pg.UUIDValue)(id)
}

// OrNull returns b, or null if it is nil.
func OrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return b
}
