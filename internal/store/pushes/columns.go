package pushes

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/suppression"
)

// PushColumns lists the columns of a push p and its row l in live, in the order of [ScanPush]. An attempt under way is
// recorded only in live: in pushes, the status stays scheduled until the attempt ends.
const PushColumns = `p.id, p.tenant_id, p.recipient, p.channel, p.category, p.level, p.address, p.message, p.metadata, p.rendering,
	p.requested_send_at, p.send_at, p.next_at, p.expires_at, p.ttl_ms, CASE WHEN l.token IS NULL THEN p.status ELSE 'sending' END,
	p.plan, coalesce(l.attempts, p.attempts), p.last_error,
	p.possibly_delivered, p.held_by, p.held_since, p.held_until, p.idempotency_id, p.idempotency_hash, p.request_id, p.created_at, coalesce(l.started_at, p.updated_at), p.campaign_id, p.retry_of, p.retry_doubt IS TRUE`

// heldColumns lists [PushColumns] for a push to show: if it waits because sending or its campaign is paused, that is what holds it.
// The query must join [joinPause].
var heldColumns = strings.Replace(PushColumns, `p.held_by, p.held_since, p.held_until`,
	`coalesce(pause.by, p.held_by), coalesce(pause.since, p.held_since), CASE WHEN pause.since IS NULL THEN p.held_until ELSE pause.until END`, 1)

// ScanPush reads one row of [PushColumns], and the columns after them into more.
func ScanPush(row pgx.CollectableRow, more ...any) (push.Push, error) {
	var (
		p     push.Push
		ttl   int64
		level int16
	)
	err := row.Scan(append([]any{
		&p.ID, &p.Tenant, &p.Recipient, &p.Channel, &p.Category, &level, &p.To, (*[]byte)(&p.Message), (*[]byte)(&p.Metadata), (*[]byte)(&p.Rendering),
		&p.RequestedSendAt, &p.SendAt, &p.NextAt, &p.ExpiresAt, &ttl, (*string)(&p.Status), &p.Gen, &p.Attempts, &p.LastError,
		&p.PossiblyDelivered, &p.Held.By, (*zeronull.Timestamptz)(&p.Held.Since), (*zeronull.Timestamptz)(&p.Held.Until), (*zeronull.UUID)(&p.IdempotencyID), &p.IdempotencyHash, &p.RequestID, &p.CreatedAt, &p.UpdatedAt,
		(*zeronull.UUID)(&p.Campaign), (*zeronull.UUID)(&p.Retry.Of), &p.Retry.Doubt,
	}, more...)...)
	p.TTL, p.Level = time.Duration(ttl)*time.Millisecond, push.Levels[level]
	return p, err
}

// insertSQL stores pushes in one table, with their rows in live. insertRetriesSQL stores pushes that include retries. The
// row of a retry in live has no campaign, so that a pause or cancel of the campaign does not affect it.
var (
	insertSQL = insertsSQL(strings.NewReplacer("{retry}", "", "{retries}", "", "{campaign}", "campaign_id"))

	insertRetriesSQL = insertsSQL(strings.NewReplacer("{retry}", ", retry_of, retry_first, retry_doubt", "{retries}", ", $23::uuid[], $24::uuid[], $25::bool[]",
		"{campaign}", "CASE WHEN retry_of IS NULL THEN campaign_id END"))
)

func insertsSQL(of *strings.Replacer) string {
	return WithEvents(of.Replace(insertText), `booked`, scheduledEvent)
}

const insertText = `
	WITH waiting AS (
		INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard, campaign_id, own_channel)
		SELECT id, tenant_id, recipient_key, CASE WHEN own THEN '` + booking.OwnRoute + `' ELSE channel END, send_at, send_at, expires_at, 1, rank, rank, recipient_key & 255, {campaign}, CASE WHEN own THEN channel END
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $5::text[], $11::timestamptz[], $12::timestamptz[], $14::smallint[], $19::uuid[], $21::bool[]{retries})
			AS n (id, tenant_id, recipient_key, channel, send_at, expires_at, rank, campaign_id, own{retry})
	), booked AS (
		INSERT INTO {pushes} AS p (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata, rendering,
			requested_send_at, send_at, next_at, expires_at, ttl_ms, status, plan, idempotency_id, idempotency_hash, request_id, created_at, updated_at, shard, level, campaign_id, address_key{retry})
		SELECT id, tenant_id, recipient_key, recipient, channel, category, address, message::json, metadata::json, rendering::json,
			requested_send_at, send_at, send_at, expires_at, ttl_ms, 'scheduled', 1, idempotency_id, idempotency_hash, request_id, created_at, created_at, recipient_key & 255, rank / 2, campaign_id, address_key{retry}
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
			$10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::bigint[], $14::smallint[], $15::uuid[], $16::bytea[], $17::text[], $18::timestamptz[], $19::uuid[], $20::text[], $22::bigint[]{retries})
			AS n (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata,
				requested_send_at, send_at, expires_at, ttl_ms, rank, idempotency_id, idempotency_hash, request_id, created_at, campaign_id, rendering, address_key{retry})
		RETURNING p.id{whole}
	){events}
	SELECT`

// insertArgs returns the columns of the granted pushes that order names, one array per column; keys are their recipients' keys.
func insertArgs(granted []*booking.Decision, order []int, keys []int64) []any {
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
		of(func(p *push.Push) any { return int16(p.Rank()) }),
		of(func(p *push.Push) any { return uuidOrNull(&p.IdempotencyID) }),
		of(func(p *push.Push) any { return OrNull(p.IdempotencyHash) }),
		of(func(p *push.Push) any { return (*pg.TextValue)(&p.RequestID) }),
		of(func(p *push.Push) any { return (*pg.TimeValue)(&p.CreatedAt) }),
		of(func(p *push.Push) any { return uuidOrNull(&p.Campaign) }),
		of(func(p *push.Push) any { return OrNull(p.Rendering) }),
		of(func(p *push.Push) any { return p.Own }),
		of(func(p *push.Push) any { return AddressKey(p) }),
	}
}

// AddressKey returns the key of a push's address, as in suppressions; nil without an address.
func AddressKey(p *push.Push) *int64 {
	if p.To == "" {
		return nil
	}
	return new(suppression.KeyOf(p.Tenant, p.Channel, p.To))
}

// retryArgs returns the columns that only retries have.
func retryArgs(granted []*booking.Decision, order []int) []any {
	of := func(value func(p *push.Push) any) pg.Column {
		return pg.Column{Length: len(order), At: func(i int) any { return value(&granted[order[i]].Push) }}
	}
	return []any{
		of(func(p *push.Push) any { return uuidOrNull(&p.Retry.Of) }),
		of(func(p *push.Push) any { return uuidOrNull(&p.Retry.First) }),
		of(func(p *push.Push) any { return p.Retry.Doubt }),
	}
}

// movedColumns lists the columns of pushes that a move does not change.
const movedColumns = `id, tenant_id, recipient_key, recipient, channel, category, address, address_key, message, metadata, rendering, ttl_ms, status, freed, attempts, attempted_at,
	possibly_delivered, last_error, idempotency_id, idempotency_hash, request_id, created_at, campaign_id, retry_of, retry_first, retry_latest, retry_doubt`

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
