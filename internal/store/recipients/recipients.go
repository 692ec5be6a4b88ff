// Package recipients keeps tenants' descriptions of their recipients, and erases recipients.
package recipients

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/bulk"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
	"github.com/sendquota/sendquota/internal/store/terms"
)

// Store keeps descriptions of recipients.
type Store struct {
	db        *pg.DB
	terms     *terms.Store
	pushes    *pushes.Store
	attempts  *attempts.Store
	campaigns *campaigns.Store
	bulk      *bulk.Store
}

// New returns a Store on a connection to Postgres.
func New(db *pg.DB, terms *terms.Store, pushes *pushes.Store, attempts *attempts.Store, campaigns *campaigns.Store, bulk *bulk.Store) *Store {
	return &Store{db: db, terms: terms, pushes: pushes, attempts: attempts, campaigns: campaigns, bulk: bulk}
}

// markDescribedSQL records that a tenant has descriptions. Transactions that start after its commit read them.
const markDescribedSQL = `UPDATE tenants SET described = true WHERE id = $1 AND NOT described`

// describeSQL stores descriptions. A null value leaves the stored one unchanged.
const describeSQL = `
	INSERT INTO recipients AS r (shard, tenant_id, recipient_key, recipient, time_zone, addresses, opt_out_all, opt_out_channels, opt_out_categories, limits, attributes, address_keys)
	SELECT n.recipient_key & 255, $1, n.recipient_key, n.recipient, coalesce(n.time_zone, old.time_zone, ''), coalesce(n.addresses::jsonb, old.addresses, '{}'),
		coalesce(n.opt_out_all, old.opt_out_all, false),
		CASE WHEN n.channels IS NULL THEN coalesce(old.opt_out_channels, '{}') ELSE ARRAY(SELECT jsonb_array_elements_text(n.channels::jsonb)) END,
		CASE WHEN n.categories IS NULL THEN coalesce(old.opt_out_categories, '{}') ELSE ARRAY(SELECT jsonb_array_elements_text(n.categories::jsonb)) END,
		coalesce(n.limits::json, old.limits, '{}'), coalesce(n.attributes::jsonb, old.attributes, '{}'),
		CASE WHEN n.address_keys IS NULL THEN coalesce(old.address_keys, '{}') ELSE ARRAY(SELECT jsonb_array_elements_text(n.address_keys::jsonb)::bigint) END
	FROM unnest($2::bigint[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[])
		AS n (recipient_key, recipient, time_zone, addresses, opt_out_all, channels, categories, limits, attributes, address_keys)
	LEFT JOIN LATERAL (
		SELECT * FROM recipients WHERE shard = ANY ($12::smallint[]) AND shard = (n.recipient_key & 255)::smallint AND recipient_key = n.recipient_key
		OFFSET 0 -- keeps the next line from choosing another index
	) old ON old.tenant_id = $1 AND old.recipient = n.recipient
	ON CONFLICT (shard, recipient_key, tenant_id, recipient) DO UPDATE SET
		time_zone = EXCLUDED.time_zone, addresses = EXCLUDED.addresses, opt_out_all = EXCLUDED.opt_out_all, opt_out_channels = EXCLUDED.opt_out_channels,
		opt_out_categories = EXCLUDED.opt_out_categories, limits = EXCLUDED.limits, attributes = EXCLUDED.attributes, address_keys = EXCLUDED.address_keys, updated_at = statement_timestamp()
	RETURNING recipient, attributes, created_at, updated_at, xmax = 0`

// Describe stores a tenant's descriptions of distinct recipients. In the same transaction, under the recipients'
// locks, it cancels their waiting pushes that the new opt-outs forbid. The results have the order of the
// descriptions.
func (s *Store) Describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) ([]booking.Described, error) {
	described := make([]booking.Described, len(all))
	some := func(order []int) error {
		these := make([]booking.Description, len(order))
		for n, i := range order {
			these[n] = all[i]
		}
		for first, more := true, true; more; first = false {
			var (
				done []booking.Described
				err  error
			)
			if done, more, err = s.describe(ctx, tenant, these); err != nil {
				return err
			}
			for n, i := range order {
				if first {
					described[i] = done[n]
				} else {
					described[i].Add(done[n].Canceled)
				}
			}
		}
		return nil
	}
	if !s.db.ByShard() || len(all) == 1 {
		order := make([]int, len(all))
		for i := range order {
			order[i] = i
		}
		return described, some(order)
	}
	var parts errgroup.Group
	parts.SetLimit(pushes.TenantTransactions)
	for part := range pg.ByLane(all, s.db.Cfg.Lanes, func(d booking.Description) int64 { return push.RecipientKey(tenant, d.Recipient) }) {
		parts.Go(func() error { return some(part) })
	}
	return described, parts.Wait()
}

// describe is Describe in one transaction. more reports that one transaction could not cancel all unwanted pushes:
// call describe again. Until then, none of these pushes is sent, because claims check the opt-outs.
func (s *Store) describe(ctx context.Context, tenant uuid.UUID, all []booking.Description) (described []booking.Described, more bool, err error) {
	keys := make([]int64, len(all))
	at := make(map[string]int, len(all))
	for i, d := range all {
		keys[i], at[d.Recipient] = push.RecipientKey(tenant, d.Recipient), i
	}
	locks := slices.Compact(slices.Sorted(slices.Values(keys)))
	var tried []booking.Described // the result of an earlier run, if that reached its commit
	err = s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var now time.Time
		b := &pgx.Batch{}
		b.Queue(`begin isolation level read committed`)
		s.db.Locking(false).Queue(b, locks)
		if tried != nil {
			if done, err := committedBefore(ctx, c, b, tenant, keys, tried); done || err != nil {
				return err
			}
			b = &pgx.Batch{}
		}
		described, tried = make([]booking.Described, len(all)), nil
		var old booking.Description // the description before the change, of the one that is logged
		if all[0].Log {
			s.queueDescription(b, quota.Recipient{Tenant: tenant, ID: all[0].Recipient}, &old)
		}
		b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&now) })
		b.Queue(markDescribedSQL, tenant)
		b.Queue(s.db.Joining(describeSQL), append(append([]any{tenant, keys}, describeArgs(tenant, all)...), pg.ShardsOf(keys...))...).Query(func(rows pgx.Rows) error {
			return collectDescribed(rows, all, at, described)
		})
		var waiting, putOff []pushes.LiveRow
		optedOut, limited := affected(all, keys)
		if len(optedOut) > 0 {
			s.pushes.QueueWaiting(b, tenant, optedOut, &waiting)
		}
		if len(limited) > 0 {
			s.attempts.QueuePutOff(b, tenant, limited, &putOff)
		}
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		more, err = s.pushes.CancelSome(ctx, c, attempts.UnwantedSQL, waiting, func(p pushes.Waiting) bool {
			i, ok := at[p.Recipient]
			return ok && all[i].OptOuts.Of(p.Kind).Any()
		}, func(recipient string, l pushes.LiveRow) { described[at[recipient]].Cancel(l.SendAt) })
		if err != nil {
			return err
		}
		tried = described
		b = &pgx.Batch{}
		s.attempts.QueueRecheck(b, putOff, func(key int64) { described[slices.Index(keys, key)].Rechecked++ })
		if d := descriptionDifference(&old, &all[0]); all[0].Log && (described[0].Created || len(d) > 0) {
			d.Show("canceled", 0, described[0].Pushes)
			auditlogs.QueueRecord(b, push.ActorOf(ctx), tenant, auditlog.RecipientPut, all[0].Recipient, d)
		}
		b.Queue(`commit`)
		return c.SendBatch(ctx, b).Close()
	})
	return described, more, err
}

// collectDescribed reads the rows of describeSQL. at holds the indexes of the recipients.
func collectDescribed(rows pgx.Rows, all []booking.Description, at map[string]int, described []booking.Described) error {
	var (
		d       booking.Described
		created bool
	)
	_, err := pgx.ForEachRow(rows, []any{&d.Recipient, (*[]byte)(&d.Attributes), &d.CreatedAt, &d.UpdatedAt, &created}, func() error {
		i := at[d.Recipient]
		described[i] = booking.Described{Description: all[i], Created: created}
		described[i].Attributes, described[i].CreatedAt, described[i].UpdatedAt = bytes.Clone(d.Attributes), d.CreatedAt, d.UpdatedAt
		return nil
	})
	return err
}

// affected returns the keys of recipients with an opt-out, and of recipients whose limits or time zone may have changed.
func affected(all []booking.Description, keys []int64) (optedOut, limited []int64) {
	for i, d := range all {
		if d.OptOuts.Any() {
			optedOut = append(optedOut, keys[i])
		}
		if !d.Keep.Has(booking.Limits) || !d.Keep.Has(booking.TimeZone) {
			limited = append(limited, keys[i])
		}
	}
	return optedOut, limited
}

// descriptionDifference returns the audit log's description of a change. It names the members of addresses and
// attributes that changed, but not their values.
func descriptionDifference(old, is *booking.Description) auditlogs.Difference {
	d := auditlogs.Difference{}
	d.Show("time_zone", old.TimeZone, is.TimeZone)
	d.HideMembers("addresses", auditlogs.TextOf(old.Addresses), auditlogs.TextOf(is.Addresses))
	d.Show("opt_outs.all", old.OptOuts.All, is.OptOuts.All)
	d.Show("opt_outs.channels", old.OptOuts.Channels, is.OptOuts.Channels)
	d.Show("opt_outs.categories", old.OptOuts.Categories, is.OptOuts.Categories)
	d.Show("limits", old.Limits, is.Limits)
	d.HideMembers("attributes", old.Attributes, is.Attributes)
	return d
}

// committedBefore runs a batch that locks recipients, and reports whether the earlier run was committed after all. If
// it was, committedBefore ends the transaction. If other writers have since changed all of these descriptions, it
// reports false.
func committedBefore(ctx context.Context, c *pgxpool.Conn, b *pgx.Batch, tenant uuid.UUID, keys []int64, tried []booking.Described) (done bool, err error) {
	at := make(map[string]time.Time, len(tried))
	for i := range tried {
		at[tried[i].Recipient] = tried[i].UpdatedAt
	}
	b.Queue(`SELECT recipient, updated_at FROM recipients WHERE shard = ANY ($3::smallint[]) AND recipient_key = ANY ($1::bigint[]) AND tenant_id = $2`,
		keys, tenant, pg.ShardsOf(keys...)).Query(func(rows pgx.Rows) error {
		var (
			recipient string
			updated   time.Time
		)
		_, err := pgx.ForEachRow(rows, []any{&recipient, &updated}, func() error {
			tried, ok := at[recipient]
			done = done || ok && tried.Equal(updated)
			return nil
		})
		return err
	})
	if err = c.SendBatch(ctx, b).Close(); err == nil && done {
		_, err = c.Exec(ctx, `commit`)
	}
	return done, err
}

// describeArgs returns descriptions as one array per column.
func describeArgs(tenant uuid.UUID, all []booking.Description) []any {
	n := len(all)
	var (
		ids, everything, keys                                      = make([]string, n), make([]*bool, n), make([]*string, n)
		zones, addresses, channels, categories, limits, attributes = make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n), make([]*string, n)
	)
	for i, d := range all {
		ids[i] = d.Recipient
		if !d.Keep.Has(booking.TimeZone) {
			zones[i] = &d.TimeZone
		}
		if !d.Keep.Has(booking.Addresses) {
			addresses[i], keys[i] = asJSON(d.Addresses, `{}`), asJSON(d.AddressKeys(tenant), `[]`)
		}
		if !d.Keep.Has(booking.OptOutAll) {
			everything[i] = &d.OptOuts.All
		}
		if !d.Keep.Has(booking.OptOutChannels) {
			channels[i] = asJSON(d.OptOuts.Channels, `[]`)
		}
		if !d.Keep.Has(booking.OptOutCategories) {
			categories[i] = asJSON(d.OptOuts.Categories, `[]`)
		}
		if !d.Keep.Has(booking.Limits) {
			limits[i] = limitsJSON(&d)
		}
		if !d.Keep.Has(booking.Attributes) {
			attributes[i] = asJSON(d.Attributes, `{}`)
		}
	}
	return []any{ids, zones, addresses, everything, channels, categories, limits, attributes, keys}
}

// limitsJSON writes limits as a JSON object that keeps their order.
func limitsJSON(d *booking.Description) *string {
	text := []byte{'{'}
	for i, name := range d.LimitNames() {
		if i > 0 {
			text = append(text, ',')
		}
		quoted, _ := json.Marshal(name)
		text = append(append(text, quoted...), ':')
		text = strconv.AppendInt(text, int64(d.Limits[name]), 10)
	}
	return new(string(append(text, '}')))
}

// asJSON writes a map or a list as JSON; nil becomes nothing.
func asJSON(v any, nothing string) *string {
	text, err := json.Marshal(v)
	if err != nil || string(text) == "null" {
		return &nothing
	}
	return new(string(text))
}
