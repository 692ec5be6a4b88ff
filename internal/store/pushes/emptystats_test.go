package pushes_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestStore_RowsReadAfterEmpty checks that plans that were made for empty partitions, as after a nightly ANALYZE, do
// not read all later rows.
func TestStore_RowsReadAfterEmpty(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.Exec(t, `ANALYZE pushes; ANALYZE sends; ANALYZE live`)
	b.Exec(t, `DO $$ DECLARE t regclass; BEGIN
		FOR t IN SELECT relid FROM pg_partition_tree('pushes') WHERE isleaf UNION SELECT relid FROM pg_partition_tree('sends') WHERE isleaf LOOP
			EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t);
		END LOOP;
	END $$`)
	b.Exec(t, `ALTER TABLE live SET (autovacuum_enabled = off)`)
	life := func(i int) {
		p := b.Booked(t, fmt.Sprint("r", i), 0)
		b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
		b.MustRead(t, p)
	}
	n := b.Counted(t, pg.Config{Lanes: 4, MaxConns: 1, ReadConns: 4}, `SELECT coalesce(sum(idx_tup_read), 0)::int FROM pg_stat_user_indexes`, func() {
		life(0) // the plans are made here
		for i := range 300 {
			b.Exec(t, `INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
				SELECT gen_random_uuid(), 1, $1, $2, 'x', 'log', now(), now(), now(), 'delivered'`, b.TenantID, push.RecipientKey(b.TenantID, fmt.Sprint("s", i)))
			b.Booked(t, fmt.Sprint("s", i), time.Hour)
		}
		for i := range 20 {
			life(i + 1)
		}
	})
	if n > 20*30+300*10 {
		t.Errorf("%d rows were read", n)
	}
}
