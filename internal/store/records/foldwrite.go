package records

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// write adds the sums to the stored rows. The lock of the fold keeps other writers out.
func (f *fold) write(ctx context.Context, tx pgx.Tx) error {
	keys := make([]statKey, 0, len(f.stats))
	for k := range f.stats {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, statKey.compare)
	if err := f.addStoredLateness(ctx, tx, keys); err != nil {
		return err
	}
	if err := f.writeStats(ctx, tx, keys); err != nil {
		return err
	}
	return f.writeAhead(ctx, tx)
}

// keyArgs returns keys as one array per column.
func keyArgs(keys []statKey) []any {
	n := len(keys)
	var (
		tenants          = make([]uuid.UUID, n)
		steps, ofs, keyz = make([]string, n), make([]string, n), make([]string, n)
		ats              = make([]time.Time, n)
	)
	for i, k := range keys {
		tenants[i], steps[i], ofs[i], ats[i], keyz[i] = k.tenant, k.step, k.of, time.Unix(k.at, 0).UTC(), k.key
	}
	return []any{tenants, steps, ofs, ats, keyz}
}

// addStoredLateness adds the stored histograms to the summed ones.
func (f *fold) addStoredLateness(ctx context.Context, tx pgx.Tx, keys []statKey) error {
	var sent []statKey
	for _, k := range keys {
		if f.stats[k].Sent > 0 {
			sent = append(sent, k)
		}
	}
	if len(sent) == 0 {
		return nil
	}
	rows, _ := tx.Query(ctx, `
		SELECT n.i, s.late FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[]) WITH ORDINALITY AS n (tenant_id, step, of, at, key, i)
		JOIN stats s ON s.tenant_id = n.tenant_id AND s.step = n.step AND s.of = n.of AND s.at = n.at AND s.key = n.key
		WHERE s.late IS NOT NULL`, keyArgs(sent)...)
	var (
		i    int
		late []byte
	)
	_, err := pgx.ForEachRow(rows, []any{&i, &late}, func() error {
		f.stats[sent[i-1]].Late.AddBytes(late)
		return nil
	})
	return err
}

func (f *fold) writeStats(ctx context.Context, tx pgx.Tx, keys []statKey) error {
	n := len(keys)
	var (
		accepted, deferred, refused, sent = make([]int64, n), make([]int64, n), make([]int64, n), make([]int64, n)
		failed, expired, canceled         = make([]int64, n), make([]int64, n), make([]int64, n)
		segments                          = make([]int64, n)
		late                              = make([][]byte, n)
	)
	for i, k := range keys {
		s := f.stats[k]
		accepted[i], deferred[i], refused[i], sent[i], failed[i], expired[i], canceled[i] = s.Accepted, s.Deferred, s.Refused, s.Sent, s.Failed, s.Expired, s.Canceled
		segments[i] = s.Segments
		if s.Sent > 0 {
			late[i] = s.Late.Bytes()
		}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO stats AS s (tenant_id, step, of, at, key, accepted, deferred, refused, sent, failed, expired, canceled, segments, late)
		SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[],
			$6::bigint[], $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bytea[])
		ON CONFLICT (tenant_id, step, of, at, key) DO UPDATE SET
			accepted = s.accepted + excluded.accepted, deferred = s.deferred + excluded.deferred, refused = s.refused + excluded.refused,
			sent = s.sent + excluded.sent, failed = s.failed + excluded.failed, expired = s.expired + excluded.expired, canceled = s.canceled + excluded.canceled,
			segments = s.segments + excluded.segments, late = coalesce(excluded.late, s.late)`,
		append(keyArgs(keys), accepted, deferred, refused, sent, failed, expired, canceled, segments, late)...)
	return err
}

func (f *fold) writeAhead(ctx context.Context, tx pgx.Tx) error {
	keys := make([]aheadKey, 0, len(f.ahead))
	for k, n := range f.ahead {
		if n != 0 {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	slices.SortFunc(keys, aheadKey.compare)
	n := len(keys)
	var (
		tenants, campaigns   = make([]uuid.UUID, n), make([]uuid.UUID, n)
		hours                = make([]time.Time, n)
		channels, categories = make([]string, n), make([]string, n)
		counts               = make([]int64, n)
	)
	for i, k := range keys {
		tenants[i], hours[i], channels[i], categories[i], campaigns[i], counts[i] = k.tenant, time.Unix(k.hour, 0).UTC(), k.channel, k.category, k.campaign, f.ahead[k]
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO ahead AS a (tenant_id, hour, channel, category, campaign_id, n)
		SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::uuid[], $6::bigint[])
		ON CONFLICT (tenant_id, hour, channel, category, campaign_id) DO UPDATE SET n = a.n + excluded.n`, tenants, hours, channels, categories, campaigns, counts)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM ahead a USING unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::uuid[]) n (tenant_id, hour, channel, category, campaign_id)
		WHERE a.tenant_id = n.tenant_id AND a.hour = n.hour AND a.channel = n.channel AND a.category = n.category AND a.campaign_id = n.campaign_id AND a.n = 0`,
		tenants, hours, channels, categories, campaigns)
	return err
}
