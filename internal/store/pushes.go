package store

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/push"
)

// pushColumns are what scanPush reads, in its order, of a push p and its row l in live. What an attempt that is under way
// changes stands there alone: pushes says scheduled until the attempt has ended.
const pushColumns = `p.id, p.tenant_id, p.recipient, p.channel, p.category, p.address, p.message, p.metadata,
	p.requested_send_at, p.send_at, p.next_at, p.expires_at, p.ttl_ms, CASE WHEN l.token IS NULL THEN p.status ELSE 'sending' END,
	p.plan, coalesce(l.attempts, p.attempts), p.last_error,
	p.possibly_delivered, p.idempotency_id, p.idempotency_hash, p.request_id, p.created_at, coalesce(l.started_at, p.updated_at)`

// itsLive joins a push with its row in live. There is none if the push has ended.
const itsLive = `LEFT JOIN live l ON l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at AND l.push_id = p.id`

// underWay says of a push p that an attempt is.
const underWay = `EXISTS (
	SELECT FROM live l WHERE l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.send_at = p.send_at AND l.push_id = p.id AND l.token IS NOT NULL)`

// scanPush reads one row of [pushColumns], and what follows them into more.
func scanPush(row pgx.CollectableRow, more ...any) (push.Push, error) {
	var (
		p   push.Push
		ttl int64
	)
	err := row.Scan(append([]any{
		(*[16]byte)(&p.ID), (*[16]byte)(&p.Tenant), &p.Recipient, &p.Channel, &p.Category, &p.To, (*[]byte)(&p.Message), (*[]byte)(&p.Metadata),
		&p.RequestedSendAt, &p.SendAt, &p.NextAt, &p.ExpiresAt, &ttl, (*string)(&p.Status), &p.Gen, &p.Attempts, &p.LastError,
		&p.PossiblyDelivered, (*zeronull.UUID)(&p.IdempotencyID), &p.IdempotencyHash, &p.RequestID, &p.CreatedAt, &p.UpdatedAt,
	}, more...)...)
	p.TTL = time.Duration(ttl) * time.Millisecond
	return p, err
}

func collectPush(row pgx.CollectableRow) (push.Push, error) { return scanPush(row) }

// Push returns a tenant's push with its sends, or [push.ErrNotFound].
func (s *Store) Push(ctx context.Context, tenant, id uuid.UUID) (p push.Push, err error) {
	err = s.read(ctx, tenant, func(ctx context.Context, c reader) error {
		p, err = readPush(ctx, c, tenant, id)
		return err
	})
	return p, err
}

// batcher is a connection, or a [reader].
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

func readPush(ctx context.Context, c batcher, tenant, id uuid.UUID) (push.Push, error) {
	b := &pgx.Batch{}
	b.Queue(`SELECT `+pushColumns+` FROM pushes p `+itsLive+` WHERE p.id = $1 AND p.tenant_id = $2`, [16]byte(id), [16]byte(tenant))
	b.Queue(`
		SELECT attempt, started_at, ended_at, outcome, provider_message_id, error FROM sends WHERE push_id = $1 AND ended_at IS NOT NULL
		UNION ALL
		SELECT l.attempts, l.started_at, NULL, NULL, '', '' FROM pushes p `+itsLive+` WHERE p.id = $1 AND l.token IS NOT NULL
		ORDER BY 1`, [16]byte(id))
	res := c.SendBatch(ctx, b)
	defer res.Close()

	rows, _ := res.Query()
	p, err := pgx.CollectExactlyOneRow(rows, collectPush)
	if err != nil {
		return push.Push{}, err
	}
	rows, _ = res.Query()
	p.Sends, err = pgx.CollectRows(rows, collectSend)
	return p, err
}

func collectSend(row pgx.CollectableRow) (push.Send, error) {
	var send push.Send
	err := row.Scan(&send.Attempt, &send.StartedAt, (*zeronull.Timestamptz)(&send.EndedAt), (*zeronull.Text)(&send.Outcome), &send.ProviderMessageID, &send.Error)
	return send, err
}
