package records_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/stats"
)

// forgeYear stores a year of a tenant's numbers, with four channels, ten categories and four campaigns a day, as the
// workers would have stored them: hours for 400 days, days, and histograms of sixty buckets; and as many for other
// tenants.
func (b *bundle) forgeYear(t testing.TB) {
	t.Helper()
	late := stats.Lateness{}
	for i := range int16(60) {
		late[4*i] = int64(1000 + i)
	}
	b.Exec(t, `
		INSERT INTO stats (tenant_id, step, of, at, key, accepted, sent, late)
		SELECT o.tenant, s.step, k.of, s.at, k.key, 1000, 990, $2
		FROM (VALUES ($1::uuid), (gen_random_uuid())) o (tenant) CROSS JOIN (
			SELECT 'day' AS step, generate_series(date_trunc('day', now()) - interval '399 days', date_trunc('day', now()), '1 day') AS at
			UNION ALL
			SELECT 'hour', generate_series(date_trunc('day', now()) - interval '30 days', now(), '1 hour')
		) s CROSS JOIN LATERAL (
			SELECT 'total' AS of, '' AS key
			UNION ALL SELECT 'channel', 'channel ' || i FROM generate_series(1, 4) i
			UNION ALL SELECT 'category', 'category ' || i FROM generate_series(1, 10) i
			UNION ALL SELECT 'campaign', md5(s.at::text || i)::uuid::text FROM generate_series(1, 4) i
		) k`, b.TenantID, late.Bytes())
	b.Exec(t, `ANALYZE stats`)
}

// TestStats_RowsRead checks that a year by day reads a row for each day and the hours of today, and no other rows.
func TestStats_RowsRead(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.forgeYear(t)
	now := time.Now().UTC()
	q := stats.Query{By: stats.ByDay, From: now.Truncate(24*time.Hour).AddDate(-1, 0, 0), Until: now.Truncate(time.Hour).Add(time.Hour)}
	before := storetest.Ask[int](t, b.DB, `SELECT pg_stat_get_tuples_returned('stats_pkey'::regclass)::int`)
	report, err := b.Stats(t.Context(), b.TenantID, q)
	if err != nil || len(report.Groups) < 366 {
		t.Fatal(len(report.Groups), err)
	}
	b.Close() // so that the server's statistics are complete
	storetest.Eventually(t, "the statistics are there", func() bool {
		return storetest.Ask[int](t, b.Watch, `SELECT pg_stat_get_tuples_returned('stats_pkey'::regclass)::int`) > before
	})
	if n := storetest.Ask[int](t, b.Watch, `SELECT pg_stat_get_tuples_returned('stats_pkey'::regclass)::int`) - before; n > 367+24 {
		t.Errorf("%d rows were read, want one for each day and each hour of today", n)
	}
}

// BenchmarkStats reads a year by day.
func BenchmarkStats(b *testing.B) {
	for _, by := range []stats.By{stats.ByDay, stats.ByChannel, stats.ByCategory, stats.ByCampaign} {
		b.Run(string(by), func(b *testing.B) {
			s := setupNew(b)
			s.forgeYear(b)
			until := time.Now().UTC().Add(time.Hour).Truncate(time.Hour)
			b.ResetTimer()
			for b.Loop() {
				report, err := s.Stats(b.Context(), s.TenantID, stats.Query{By: by, From: until.AddDate(-1, 0, 0), Until: until})
				if err != nil || len(report.Groups) == 0 {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkAheadCounts reads a month of a million scheduled pushes, by hour: as a whole, and by parts.
func BenchmarkAheadCounts(b *testing.B) {
	s := setupNew(b)
	s.Exec(b, `
		INSERT INTO ahead (tenant_id, hour, channel, category, campaign_id, n)
		SELECT $1, date_trunc('hour', now()) + h * interval '1 hour', 'channel ' || c, 'category ' || k % 3, md5('campaign ' || k)::uuid, 35
		FROM generate_series(0, 743) h, generate_series(1, 4) c, generate_series(1, 10) k`, s.TenantID)
	s.Exec(b, `ANALYZE ahead`)
	from := time.Now().UTC().Truncate(time.Hour)
	for _, split := range []stats.By{"", stats.ByChannel, stats.ByCategory, stats.ByCampaign} {
		b.Run("split by "+string(split), func(b *testing.B) {
			for b.Loop() {
				counts, err := s.AheadCounts(b.Context(), s.TenantID, stats.AheadQuery{By: stats.ByHour, Split: split, From: from, Until: from.AddDate(0, 1, 1)})
				if err != nil || len(counts) < 700 || (len(counts[0].Parts) > 0) != (split != "") {
					b.Fatal(len(counts), err)
				}
			}
		})
	}
}
