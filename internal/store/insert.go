package store

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// insertSQL stores pushes, and that they wait.
const insertSQL = `
	WITH waiting AS (
		INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, bulk, phase)
		SELECT id, tenant_id, recipient_key, channel, send_at, send_at, expires_at, 1, bulk, bulk::int
		FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $5::text[], $11::timestamptz[], $12::timestamptz[], $14::bool[])
			AS n (id, tenant_id, recipient_key, channel, send_at, expires_at, bulk)
	)
	INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata,
		requested_send_at, send_at, next_at, expires_at, ttl_ms, status, plan, idempotency_id, idempotency_hash, request_id, created_at, updated_at)
	SELECT id, tenant_id, recipient_key, recipient, channel, category, address, message::json, metadata::json,
		requested_send_at, send_at, send_at, expires_at, ttl_ms, 'scheduled', 1, idempotency_id, idempotency_hash, request_id, created_at, created_at
	FROM unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
		$10::timestamptz[], $11::timestamptz[], $12::timestamptz[], $13::bigint[], $15::uuid[], $16::bytea[], $17::text[], $18::timestamptz[])
		AS n (id, tenant_id, recipient_key, recipient, channel, category, address, message, metadata,
			requested_send_at, send_at, expires_at, ttl_ms, idempotency_id, idempotency_hash, request_id, created_at)`

// insertArgs turns grants into one array per column.
func insertArgs(granted []booking.Grant) []any {
	n := len(granted)
	var (
		ids        = make([][16]byte, n)
		tenants    = make([][16]byte, n)
		keys       = make([]int64, n)
		recipients = make([]string, n)
		channels   = make([]string, n)
		categories = make([]string, n)
		addresses  = make([]string, n)
		messages   = make([]string, n)
		metadata   = make([]*string, n)
		requested  = make([]time.Time, n)
		sendAt     = make([]time.Time, n)
		expires    = make([]time.Time, n)
		ttls       = make([]int64, n)
		bulk       = make([]bool, n)
		keyed      = make([]*[16]byte, n)
		hashes     = make([][]byte, n)
		requests   = make([]string, n)
		created    = make([]time.Time, n)
	)
	for i := range granted {
		p := &granted[i].Push
		ids[i], tenants[i], keys[i] = p.ID, p.Tenant, push.RecipientKey(p.Tenant, p.Recipient)
		recipients[i], channels[i], categories[i], addresses[i] = p.Recipient, p.Channel, p.Category, p.To
		messages[i] = string(p.Message)
		if p.Metadata != nil {
			m := string(p.Metadata)
			metadata[i] = &m
		}
		requested[i], sendAt[i], expires[i], created[i] = p.RequestedSendAt, p.SendAt, p.ExpiresAt, p.CreatedAt
		ttls[i], bulk[i] = p.TTL.Milliseconds(), p.Bulk
		if p.IdempotencyID != uuid.Nil {
			keyed[i] = (*[16]byte)(&p.IdempotencyID)
		}
		hashes[i], requests[i] = p.IdempotencyHash, p.RequestID
	}
	return []any{ids, tenants, keys, recipients, channels, categories, addresses, messages, metadata,
		requested, sendAt, expires, ttls, bulk, keyed, hashes, requests, created}
}
