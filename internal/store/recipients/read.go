package recipients

import (
	"bytes"
	"context"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// descriptionColumns are the columns that scanDescription reads, of recipients r.
const descriptionColumns = `r.recipient, r.time_zone, r.addresses, r.opt_out_all, r.opt_out_channels, r.opt_out_categories, r.limits, ARRAY(SELECT json_object_keys(r.limits)), r.attributes, r.created_at, r.updated_at`

func scanDescription(row pgx.CollectableRow) (d booking.Description, err error) {
	err = row.Scan(
		&d.Recipient, &d.TimeZone, &d.Addresses, &d.OptOuts.All, &d.OptOuts.Channels, &d.OptOuts.Categories, &d.Limits, &d.LimitOrder, (*[]byte)(&d.Attributes),
		&d.CreatedAt, &d.UpdatedAt,
	)
	d.Attributes = bytes.Clone(d.Attributes)
	return d, err
}

// descriptionSQL reads a description by the recipient's key.
const descriptionSQL = `SELECT ` + descriptionColumns + ` FROM recipients r
	WHERE r.shard = ANY ($4::smallint[]) AND r.recipient_key = $1 AND r.tenant_id = $2 AND r.recipient = $3`

// Description returns a tenant's description of a recipient, or [push.ErrNotFound].
func (s *Store) Description(ctx context.Context, who quota.Recipient) (d booking.Description, err error) {
	err = s.db.Read(ctx, who.Tenant, func(ctx context.Context, c pg.Reader) error {
		key := push.RecipientKey(who.Tenant, who.ID)
		rows, _ := c.Query(ctx, descriptionSQL, key, who.Tenant, who.ID, pg.ShardsOf(key))
		found, err := pgx.CollectRows(rows, scanDescription)
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return push.ErrNotFound
		}
		d = found[0]
		return nil
	})
	return d, err
}

// queueDescription queues the read of a description, in the transaction that holds the recipient's lock. If there is
// none, d stays zero.
func (s *Store) queueDescription(b *pgx.Batch, who quota.Recipient, d *booking.Description) {
	key := push.RecipientKey(who.Tenant, who.ID)
	b.Queue(descriptionSQL, key, who.Tenant, who.ID, pg.ShardsOf(key)).Query(func(rows pgx.Rows) error {
		found, err := pgx.CollectRows(rows, scanDescription)
		if len(found) > 0 {
			*d = found[0]
		}
		return err
	})
}

// Descriptions returns up to limit of a tenant's descriptions that match a filter, after a recipient, ordered by
// recipient. more reports whether there are more. It returns fewer than limit if they are large.
func (s *Store) Descriptions(ctx context.Context, tenant uuid.UUID, f booking.DescriptionFilter, after string, limit int) (all []booking.Description, more bool, err error) {
	with, from, only, args := ``, `recipients`, ``, []any{tenant, after, limit + 1}
	if f.OptedOut {
		only = ` AND (opt_out_all OR opt_out_channels <> '{}' OR opt_out_categories <> '{}')`
	}
	if f.Address != "" { // use the index on addresses; in order of recipient, this would read all of them
		with = `WITH found AS MATERIALIZED (SELECT * FROM recipients WHERE tenant_id = $1 AND address_list(addresses) @> ARRAY[lower($4)]) `
		from, args = `found`, append(args, f.Address)
	}
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		all, more = nil, false
		if f.Address != "" {
			c = c.WithBitmaps()
		}
		rows, _ := c.Query(ctx, with+`SELECT `+descriptionColumns+` FROM `+from+` r WHERE r.tenant_id = $1 AND r.recipient > $2`+only+` ORDER BY r.recipient LIMIT $3`, args...)
		defer rows.Close()
		size := 0
		for rows.Next() {
			if more = len(all) == limit || size > pg.MaxPageBytes; more {
				break
			}
			d, err := scanDescription(rows)
			if err != nil {
				return err
			}
			all, size = append(all, d), size+descriptionSize(d)
		}
		rows.Close()
		return rows.Err()
	})
	return all, more, err
}

// descriptionSize estimates the bytes of a description in a response.
func descriptionSize(d booking.Description) int {
	n := 400 + len(d.Recipient) + len(d.Attributes)
	for channel, address := range d.Addresses {
		n += len(channel) + len(address) + 6
	}
	for _, words := range [][]string{d.OptOuts.Channels, d.OptOuts.Categories} {
		for _, word := range words {
			n += len(word) + 3
		}
	}
	for rule := range d.Limits {
		n += len(rule) + 40
	}
	return n
}
