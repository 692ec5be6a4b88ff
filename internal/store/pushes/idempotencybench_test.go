package pushes_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// BenchmarkBook_Keys books batches of 100, with a key for each push or without one, and reports the WAL of a push.
func BenchmarkBook_Keys(b *testing.B) {
	for _, key := range []bool{false, true} {
		b.Run(fmt.Sprint("key=", key), func(b *testing.B) {
			w := setupNew(b)
			lsn := `SELECT pg_current_wal_insert_lsn()::text`
			w.Exec(b, `CHECKPOINT`)
			before := storetest.Ask[string](b, w.DB, lsn)
			const members = 100
			for i := 0; b.Loop(); i++ {
				var drafts []booking.Draft
				for j := range members {
					d := storetest.Draft(w.TenantID, fmt.Sprint(i, " ", j), time.Hour)
					if key {
						d.Push.IdempotencyID, d.Push.RequestMember, d.Push.IdempotencyHash = uuid.New(), uuid.New(), make([]byte, 32)
					}
					drafts = append(drafts, d)
				}
				if v, err := w.Book(b.Context(), booking.Order{Drafts: drafts, Policy: storetest.ThreeRules}); err != nil || v[members-1].Outcome != booking.Booked {
					b.Fatal(v, err)
				}
			}
			wal := storetest.Ask[float64](b, w.DB, `SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1::pg_lsn)::float8`, before)
			b.ReportMetric(wal/float64(b.N*members), "WAL-B/push")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*members), "µs/push")
		})
	}
}

// BenchmarkKeys_Lookup reads 100 new keys among 30 days of them, partitioned by week or by day.
func BenchmarkKeys_Lookup(b *testing.B) {
	for name, tables := range map[string]int{"weeks": 6, "days": 31} {
		b.Run(name, func(b *testing.B) {
			w := setupNew(b)
			var all []string
			for i := range tables {
				table := fmt.Sprint("keys_", i)
				w.Exec(b, fmt.Sprintf(`CREATE TABLE %s (LIKE idempotency INCLUDING INDEXES); INSERT INTO %[1]s
					SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), sha256('x'), now(), now() FROM generate_series(1, %d)`, table, 300_000/tables))
				all = append(all, "TABLE "+table)
			}
			w.Exec(b, `ANALYZE; SET enable_seqscan = off; SET plan_cache_mode = force_generic_plan`)
			sql := `SELECT idempotency_id, member, hash, tenant_id, push_id FROM (` + strings.Join(all, " UNION ALL ") + `) k
				WHERE idempotency_id = ANY ($1::uuid[]) AND created_at > now() - interval '30 days'`
			for b.Loop() {
				ids := make([]uuid.UUID, 100)
				for i := range ids {
					ids[i] = uuid.New()
				}
				rows, err := w.DB.Query(b.Context(), sql, ids)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := pgx.CollectRows(rows, pgx.RowToMap); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*100), "µs/key")
		})
	}
}
