package pg_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// thingsSQL creates a table with partitions of three days, and grants a role some privileges on it.
const thingsSQL = `
	CREATE TABLE things (id uuid NOT NULL, at timestamptz NOT NULL DEFAULT now(), n int CHECK (n > 0), PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
	CREATE INDEX things_n ON things (n);
	INSERT INTO partitioning VALUES ('things', '3 days', 'fillfactor = 75')`

// TestMakePartitions checks that missing partitions are made once, whichever role calls. Readers and writers of the
// table do not wait for it, and it does not wait for them.
func TestMakePartitions(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	db := storetest.Connect(t, url)
	run := func(sql string, args ...any) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	role := "partitioner_" + fmt.Sprint(time.Now().UnixNano())
	run(thingsSQL)
	run(fmt.Sprintf(`CREATE ROLE %s; GRANT SELECT, INSERT ON things TO %[1]s; GRANT SELECT ON things TO PUBLIC`, role))
	t.Cleanup(func() {
		if err := devstack.Exec(context.Background(), url, fmt.Sprintf(`DROP OWNED BY %s; DROP ROLE %[1]s`, role)); err != nil {
			t.Error(err)
		}
	})
	at := time.Date(2001, 1, 5, 23, 0, 0, 0, time.UTC) // in the second part; the first begins on Monday, January 1st
	if n := storetest.Ask[int](t, db, `SELECT make_partitions('things', $1, $1)`, at); n != 1 {
		t.Fatal("made", n)
	}
	run(`BEGIN; INSERT INTO things VALUES (gen_random_uuid(), '2001-01-04'); SELECT count(*) FROM things`)
	var all sync.WaitGroup
	made := make([]int, 4)
	for i := range made {
		other := storetest.Connect(t, url)
		if _, err := other.Exec(t.Context(), `SET ROLE `+role+`; SET timezone = 'Pacific/Auckland'; SET lock_timeout = '60s'`); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			made[i] = storetest.Ask[int](t, other, `SELECT make_partitions('things', $1, $2)`, at.AddDate(0, 0, -1), at.AddDate(0, 0, 30))
		})
	}
	all.Wait()
	run(`COMMIT`)
	if n := made[0] + made[1] + made[2] + made[3]; n != 10 {
		t.Errorf("made %v", made)
	}
	want := `{"things_20010104 FOR VALUES FROM ('2001-01-04 00:00:00+00') TO ('2001-01-07 00:00:00+00')",` +
		`"things_20010107 FOR VALUES FROM ('2001-01-07 00:00:00+00') TO ('2001-01-10 00:00:00+00')"}`
	run(`SET timezone = 'UTC'`)
	if got := storetest.Ask[string](t, db, `SELECT (array_agg(relname || ' ' || pg_get_expr(relpartbound, oid) ORDER BY relname))[:2]::text FROM pg_class WHERE relkind = 'r' AND relispartition AND relname LIKE 'things%'`); got != want {
		t.Errorf("got %s", got)
	}
	if n := storetest.Ask[int](t, db, `SELECT count(*) FROM pg_class c JOIN pg_class p ON p.relname = 'things'
		WHERE c.relkind = 'r' AND c.relispartition AND c.relname LIKE 'things%' AND c.relowner = p.relowner AND c.relacl::text = p.relacl::text AND c.reloptions = '{fillfactor=75}'
			AND (SELECT count(*) FROM pg_index WHERE indrelid = c.oid AND indisvalid) = 2`); n != 11 {
		t.Errorf("%d are like the table", n)
	}
	if n := storetest.Ask[int](t, db, `SELECT make_partitions('things', $1, $1) + make_partitions('tenants', $1, $1) + make_partitions('nothing', $1, $1)`, at); n != 0 {
		t.Error("made", n)
	}
	if _, err := db.Exec(t.Context(), `SELECT make_partitions('things', '2001-01-01', '3001-01-01')`); err == nil {
		t.Error("made thousands")
	}
}
