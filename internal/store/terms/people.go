package terms

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// peopleSQL reads the descriptions of recipients.
const peopleSQL = `
	SELECT r.tenant_id, r.recipient, r.time_zone, r.addresses, r.opt_out_all, r.opt_out_channels, r.opt_out_categories, r.limits{attributes}
	FROM unnest($1::bigint[]) AS k CROSS JOIN LATERAL (
		SELECT * FROM recipients WHERE shard = ANY ($3::smallint[]) AND shard = (k & 255)::smallint AND recipient_key = k
		OFFSET 0 -- keeps the next line from choosing another index
	) r WHERE r.tenant_id = ANY ($2::uuid[])`

// People reads the descriptions of the recipients that a transaction needs.
type People struct {
	Keys    []int64
	tenants []uuid.UUID
	Found   map[quota.Recipient]booking.Person

	WithAttributes bool // also read Attributes
	Attributes     map[quota.Recipient]json.RawMessage
}

// Add adds a recipient to the query. Calls for one tenant should follow each other.
func (r *People) Add(tenant uuid.UUID, key int64) {
	r.Keys = append(r.Keys, key)
	if n := len(r.tenants); n == 0 || r.tenants[n-1] != tenant {
		r.tenants = append(r.tenants, tenant)
	}
}

// Queue adds the query for the recipients to a batch.
func (r *People) Queue(s *Store, b *pgx.Batch) *pgx.QueuedQuery {
	attributes := ""
	if r.WithAttributes {
		attributes = ", r.attributes"
	}
	return b.Queue(s.db.Joining(strings.Replace(peopleSQL, "{attributes}", attributes, 1)), r.Keys, r.tenants, pg.ShardsOf(r.Keys...))
}

// Collect reads the result of the query that Queue added into Found and Attributes.
func (r *People) Collect(rows pgx.Rows) error {
	var (
		who      quota.Recipient
		zoneName string
		p        booking.Person

		attributes []byte
	)
	r.Found = make(map[quota.Recipient]booking.Person, len(r.Keys))
	columns := []any{&who.Tenant, &who.ID, &zoneName, &p.Addresses, &p.OptOuts.All, &p.OptOuts.Channels, &p.OptOuts.Categories, &p.Limits}
	if r.WithAttributes {
		columns, r.Attributes = append(columns, &attributes), make(map[quota.Recipient]json.RawMessage, len(r.Keys))
	}
	_, err := pgx.ForEachRow(rows, columns, func() error {
		if r.WithAttributes {
			r.Attributes[who] = bytes.Clone(attributes)
		}
		if zoneName != "" {
			// A zone that this build no longer knows counts as no zone.
			p.Zone, _ = zone.Load(zoneName)
		}
		r.Found[who] = p
		p = booking.Person{}
		return nil
	})
	return err
}
