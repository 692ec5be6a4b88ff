package e2e

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// mostAtRest is the maximum number of transactions a second of an API and two workers while nothing is due.
const mostAtRest = 10

// TestIdle checks that an API and two workers come to rest. Postgres reports a transaction up to ten seconds after its
// end, so the first numbers include the start. Its server has no other databases, and makes no transactions of its own.
func TestIdle(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{database: testenv.OwnPostgres(t, "autovacuum=off").URL, config: throughputConfig})
	b.StartAPI()
	b.Start("worker")
	b.Start("worker")
	c, err := pgx.Connect(t.Context(), b.Database)
	testenv.Check(t, err)
	defer c.Close(t.Context())
	type count struct {
		At           time.Time
		Transactions int64
	}
	var counts []count
	testenv.Until(t, time.Second, "they come to rest", func() bool {
		rows, _ := c.Query(t.Context(), `SELECT clock_timestamp(), xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()`)
		now, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[count])
		testenv.Check(t, err)
		counts = append(counts, now)
		for len(counts) > 1 && now.At.Sub(counts[1].At) >= 10*time.Second {
			counts = counts[1:]
		}
		made, in := now.Transactions-counts[0].Transactions-int64(len(counts)-1), now.At.Sub(counts[0].At) // without those of this connection
		if in < 10*time.Second {
			return false
		}
		t.Logf("%d transactions in %v", made, in.Round(time.Millisecond))
		return float64(made) <= mostAtRest*in.Seconds()
	})
}
