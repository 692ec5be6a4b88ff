package storetest

import (
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

// Bundle is a store with a tenant, and connections that a test uses to read, lock and forge rows of the store.
type Bundle struct {
	*store.Store
	URL      string
	alone    bool // no other test works on the database
	DB       *pgx.Conn
	Watch    *pgx.Conn // sees what goes on while db is in a transaction
	TenantID uuid.UUID
}

// Setup returns a new tenant in the shared database, for tests of a single tenant's data.
func Setup(t testing.TB) *Bundle {
	t.Helper()
	return setupAt(t, sharedStores.take(t))
}

// SetupAlone returns a tenant in a database of its own, for tests that concern all tenants: audits, lanes, partitions,
// due or lost pushes, and counts or locks of whole tables.
func SetupAlone(t testing.TB) *Bundle {
	t.Helper()
	b := setupAt(t, ownStores.take(t))
	b.alone = true
	return b
}

// SetupNew is SetupAlone in a database that no other test has used, for tests that read Postgres' statistics or cut
// connections.
func SetupNew(t testing.TB) *Bundle {
	t.Helper()
	d := ownStores.open(t)
	t.Cleanup(func() { close(d.leave) })
	b := setupAt(t, d)
	b.alone = true
	return b
}

func setupAt(t testing.TB, d *pooledStore) *Bundle {
	t.Helper()
	b := &Bundle{Store: d.store, URL: d.url, DB: d.db, Watch: d.watch, TenantID: uuid.New()}
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, b.TenantID, b.TenantID.String())
	return b
}

func Connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	return testenv.Connect(t, url)
}

func (b *Bundle) Exec(t testing.TB, sql string, args ...any) {
	t.Helper()
	if _, err := b.DB.Exec(t.Context(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// ForgeMany runs a statement that forges very many rows, without triggers: the statement writes what they would write.
func (b *Bundle) ForgeMany(t testing.TB, sql string, args ...any) {
	t.Helper()
	b.Exec(t, `SET session_replication_role = replica`)
	b.Exec(t, sql, args...)
	b.Exec(t, `RESET session_replication_role`)
}

func Ask[T any](t testing.TB, db *pgx.Conn, sql string, args ...any) T {
	t.Helper()
	var v T
	if err := db.QueryRow(t.Context(), sql, args...).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

// Eventually waits until fact returns true.
func Eventually(t testing.TB, what string, fact func() bool) {
	t.Helper()
	testenv.Until(t, time.Millisecond, what, fact)
}

// Waiting waits until n of the store's connections wait for a lock that the test holds, or for each other behind it.
func (b *Bundle) Waiting(t testing.TB, n int) {
	t.Helper()
	Eventually(t, "the store waits for a lock", func() bool {
		return Ask[int](t, b.Watch, `WITH RECURSIVE behind (pid) AS (
				SELECT $1::int UNION
				SELECT a.pid FROM pg_stat_activity a JOIN behind ON behind.pid = ANY (pg_blocking_pids(a.pid))
				WHERE a.datname = current_database() AND a.application_name = 'sendquota' AND a.wait_event_type = 'Lock'
			) SELECT count(*) - 1 FROM behind`, int(b.DB.PgConn().PID())) >= n
	})
}

// Booked books a push, which must succeed.
func (b *Bundle) Booked(t testing.TB, recipient string, in time.Duration) push.Push {
	t.Helper()
	v := MustBook(t, b.Store, nil, Draft(b.TenantID, recipient, in))
	if v.Outcome != booking.Booked {
		t.Fatalf("%+v", v)
	}
	return v.Push
}

func (b *Bundle) MustRead(t testing.TB, p push.Push) push.Push {
	t.Helper()
	p, err := b.Push(t.Context(), p.Tenant, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// MustClaim claims for a recipient, with a lease of a minute.
func (b *Bundle) MustClaim(t testing.TB, recipient string, policy quota.Policy) booking.Claim {
	t.Helper()
	c, err := b.Claim(t.Context(), booking.ClaimOrder{RecipientKey: push.RecipientKey(b.TenantID, recipient), Policy: policy, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Claimed claims a push that must be due.
func (b *Bundle) Claimed(t testing.TB, p push.Push) booking.Claim {
	t.Helper()
	c := b.MustClaim(t, p.Recipient, nil)
	if c.Outcome != booking.Claimed || c.Push.ID != p.ID {
		t.Fatalf("claimed %+v, want %s", c, p.ID)
	}
	return c
}

// The usual results of an attempt.
var (
	Sent      = booking.Finish{Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}
	TryAgain  = booking.Finish{Outcome: push.Refused, Error: "busy", Resolution: push.Resolution{Status: push.Scheduled, Reason: "busy"}}
	GaveUp    = booking.Finish{Outcome: push.Refused, Error: "bad", Resolution: push.Resolution{Status: push.Failed, Reason: "bad"}}
	LostTrack = booking.Finish{Outcome: push.Unknown, Error: "reset", Resolution: push.Resolution{Status: push.Scheduled, Reason: "reset"}}
)

// MustFinish ends a claimed attempt with one of these results.
func (b *Bundle) MustFinish(t testing.TB, c booking.Claim, f booking.Finish) (more bool) {
	t.Helper()
	f.Attempt = c.Attempted()
	more, err := b.Finish(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return more
}

func (b *Bundle) WantStatus(t testing.TB, p push.Push, want push.Status) {
	t.Helper()
	if got := b.MustRead(t, p).Status; got != want {
		t.Errorf("push %s is %s, want %s", p.ID, got, want)
	}
}

// MustAudit fails if a promise is broken: any promise in a database of one's own, or one to the tenant in the shared
// database.
func (b *Bundle) MustAudit(t testing.TB, policy quota.Policy) {
	t.Helper()
	findings, err := b.Audit(t.Context(), policy, time.Now().Add(-48*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if b.alone || f.Tenant == b.TenantID {
			t.Errorf("audit: %+v", f)
		}
	}
}

// Configure changes a setting of Postgres, and opens a new store on the same database.
func (b *Bundle) Configure(t testing.TB, setting string) {
	t.Helper()
	name := Ask[string](t, b.DB, `SELECT current_database()`)
	b.Exec(t, `ALTER DATABASE "`+name+`" `+setting)
	b.Store = OpenURL(t, b.URL, store.Config{})
}
