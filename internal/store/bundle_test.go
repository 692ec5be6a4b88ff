package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// bundle is a store with a tenant, and connections through which the test looks at, holds up and forges what the store
// works on.
type bundle struct {
	*store.Store
	url    string
	alone  bool // no other test works on the database
	db     *pgx.Conn
	watch  *pgx.Conn // sees what goes on while db is in a transaction
	tenant uuid.UUID
}

// setup is a tenant beside those of other tests, for what a test asks of its own tenant alone.
func setup(t testing.TB) *bundle {
	t.Helper()
	return setupAt(t, sharedDesks.take(t))
}

// setupAlone is a tenant in a database of its own, for what is about all tenants: audits, lanes, partitions, what is due or
// lost, and what is counted or locked in whole tables.
func setupAlone(t testing.TB) *bundle {
	t.Helper()
	b := setupAt(t, ownDesks.take(t))
	b.alone = true
	return b
}

// setupNew is setupAlone in a database that no other test had before, for what Postgres itself has counted in it, and for connections that
// are cut.
func setupNew(t testing.TB) *bundle {
	t.Helper()
	d := ownDesks.open(t)
	t.Cleanup(func() { close(d.leave) })
	b := setupAt(t, d)
	b.alone = true
	return b
}

func setupAt(t testing.TB, d *desk) *bundle {
	t.Helper()
	b := &bundle{Store: d.store, url: d.url, db: d.db, watch: d.watch, tenant: uuid.New()}
	b.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, b.tenant, b.tenant.String())
	return b
}

func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	return testenv.Connect(t, url)
}

func (b *bundle) exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// forgeMany is exec for a statement that forges very many rows: it does without triggers, and fills what these would fill.
func (b *bundle) forgeMany(t testing.TB, sql string, args ...any) {
	t.Helper()
	b.exec(t, `SET session_replication_role = replica`)
	b.exec(t, sql, args...)
	b.exec(t, `RESET session_replication_role`)
}

func ask[T any](t testing.TB, db *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// eventually waits for a fact.
func eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	testenv.Until(t, time.Millisecond, what, fact)
}

// waiting waits until so many of the store's connections wait for a lock that the test has, or for each other behind it.
func (b *bundle) waiting(t testing.TB, n int) {
	t.Helper()
	eventually(t, "the store waits for a lock", func() bool {
		return ask[int](t, b.watch, `WITH RECURSIVE behind (pid) AS (
				SELECT $1::int UNION
				SELECT a.pid FROM pg_stat_activity a JOIN behind ON behind.pid = ANY (pg_blocking_pids(a.pid))
				WHERE a.datname = current_database() AND a.application_name = 'sendquota' AND a.wait_event_type = 'Lock'
			) SELECT count(*) - 1 FROM behind`, int(b.db.PgConn().PID())) >= n
	})
}

// booked books a push that must find a place.
func (b *bundle) booked(t testing.TB, recipient string, in time.Duration) push.Push {
	t.Helper()
	v := book(t, b.Store, nil, draft(b.tenant, recipient, in))
	if v.Outcome != booking.Booked {
		t.Fatalf("%+v", v)
	}
	return v.Push
}

func (b *bundle) read(t testing.TB, p push.Push) push.Push {
	t.Helper()
	p, err := b.Push(t.Context(), p.Tenant, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// claim claims for a recipient, with a lease of a minute.
func (b *bundle) claim(t testing.TB, recipient string, policy quota.Policy) booking.Claim {
	t.Helper()
	c, err := b.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.tenant, recipient), Policy: policy, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// claimed claims what must be there to be sent.
func (b *bundle) claimed(t testing.TB, p push.Push) booking.Claim {
	t.Helper()
	c := b.claim(t, p.Recipient, nil)
	if c.Outcome != booking.Claimed || c.Push.ID != p.ID {
		t.Fatalf("claimed %+v, want %s", c, p.ID)
	}
	return c
}

// The usual ends of an attempt.
var (
	sent      = booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}
	tryAgain  = booking.Finish{Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: push.Scheduled, Reason: "busy"}}
	gaveUp    = booking.Finish{Outcome: push.Refused, Error: "bad", Resolution: push.Resolution{Status: push.Failed, Reason: "bad"}}
	lostTrack = booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Scheduled, Reason: "reset"}}
)

// finish ends a claimed attempt in one of these ways.
func (b *bundle) finish(t testing.TB, c booking.Claim, f booking.Finish) (more bool) {
	t.Helper()
	f.Attempt = c.Attempted()
	more, err := b.Finish(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return more
}

func (b *bundle) wantStatus(t testing.TB, p push.Push, want push.Status) {
	t.Helper()
	if got := b.read(t, p).Status; got != want {
		t.Errorf("push %s is %s, want %s", p.ID, got, want)
	}
}

// audit wants no promise broken: none at all, or none of the tenant where others have theirs.
func (b *bundle) audit(t testing.TB, policy quota.Policy) {
	t.Helper()
	findings, err := b.Audit(t.Context(), policy, time.Now().Add(-48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if b.alone || f.Tenant == b.tenant {
			t.Errorf("audit: %+v", f)
		}
	}
}

// configure sets Postgres up for a new store on the same database.
func (b *bundle) configure(t testing.TB, setting string) {
	t.Helper()
	name := ask[string](t, b.db, `SELECT current_database()`)
	b.exec(t, `ALTER DATABASE "`+name+`" `+setting)
	b.Store = openURL(t, b.url, store.Config{})
}

func (b *bundle) ctx() context.Context { return context.Background() }
