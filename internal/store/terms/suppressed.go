package terms

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/suppression"
)

// suppressedSQL reads the entries in force for addresses, $1, and for all addresses of described recipients, $2, of tenants, $3.
const suppressedSQL = `
	SELECT s.address_key, s.tenant_id, s.channel, s.address, s.reason, s.at, s.until, s.push_id FROM suppressions s
	WHERE s.address_key = ANY ($1::bigint[] || ARRAY(
			SELECT unnest(r.address_keys) FROM recipients r WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = ANY ($2::bigint[]) AND r.tenant_id = ANY ($3::uuid[])))
		AND (s.until IS NULL OR s.until > statement_timestamp())
	ORDER BY s.address_key, s.at`

// Suppressed reads the suppressions of the addresses that a transaction needs, of tenants that may have any.
type Suppressed struct {
	addresses  []int64
	recipients []int64
	tenants    []uuid.UUID
	Found      map[int64]suppression.Entry // by the key of the address: the oldest in force
}

// Address adds an address to the query.
func (r *Suppressed) Address(tenant uuid.UUID, channel, address string) {
	r.addresses = append(r.addresses, suppression.KeyOf(tenant, channel, address))
}

// Recipient adds all addresses of a described recipient to the query. Calls for one tenant should follow each other.
func (r *Suppressed) Recipient(tenant uuid.UUID, key int64) {
	r.recipients = append(r.recipients, key)
	if n := len(r.tenants); n == 0 || r.tenants[n-1] != tenant {
		r.tenants = append(r.tenants, tenant)
	}
}

// Any reports whether there is anything to read.
func (r *Suppressed) Any() bool { return len(r.addresses)+len(r.recipients) > 0 }

// QueueBooking adds a statement to a batch of a transaction that books: it takes a transaction id. After that, whoever stores an entry that
// the transaction does not see waits for its end, and then cancels what it has booked.
func (r *Suppressed) QueueBooking(b *pgx.Batch) { b.Queue(`SELECT pg_current_xact_id()`) }

// Queue adds the query to a batch.
func (r *Suppressed) Queue(b *pgx.Batch) *pgx.QueuedQuery {
	return b.Queue(suppressedSQL, append([]int64{}, r.addresses...), append([]int64{}, r.recipients...), append([]uuid.UUID{}, r.tenants...), pg.ShardsOf(r.recipients...))
}

// Collect reads the result of the query that Queue added.
func (r *Suppressed) Collect(rows pgx.Rows) error {
	var (
		key int64
		e   suppression.Entry
	)
	_, err := pgx.ForEachRow(rows, []any{&key, &e.Tenant, &e.Channel, &e.Address, (*string)(&e.Reason), &e.At, (*zeronull.Timestamptz)(&e.Until), (*zeronull.UUID)(&e.Push)}, func() error {
		if r.Found == nil {
			r.Found = map[int64]suppression.Entry{}
		}
		if _, older := r.Found[key]; !older {
			r.Found[key] = e
		}
		return nil
	})
	return err
}

// SuppressionOf returns the oldest suppression in force of an address, or nil. It takes no lock.
func (s *Store) SuppressionOf(ctx context.Context, tenant uuid.UUID, channel, address string) (of *suppression.Entry, err error) {
	if address == "" || !s.Known.get(tenant).Suppresses {
		return nil, nil
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var read Suppressed
		read.Address(tenant, channel, address)
		b := &pgx.Batch{}
		read.Queue(b).Query(read.Collect)
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if e, ok := read.Found[suppression.KeyOf(tenant, channel, address)]; ok {
			of = &e
		}
		return nil
	})
	return of, err
}
