package pg_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/store/webhooks"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/webhook"
)

// The number of connections that PgBouncer has to Postgres, and that the store opens to PgBouncer.
const (
	poolerConnections = 4
	poolerClients     = 16
)

// pooled is a bundle whose store goes through PgBouncer, as a role with few privileges. The statements of the test
// itself go to Postgres directly.
type pooled struct {
	*bundle
	pooler  *devstack.Server
	role    string
	service string // the URL of Postgres for the role
}

func setupPooled(t *testing.T, cfg pg.Config, settings ...string) *pooled {
	t.Helper()
	direct, role := testenv.Postgres(t), "service_"+strings.ReplaceAll(uuid.NewString(), "-", "")
	u, err := url.Parse(direct)
	testenv.Check(t, err)
	p := &pooled{role: role, bundle: &bundle{&storetest.Bundle{URL: direct, DB: storetest.Connect(t, direct), Watch: storetest.Connect(t, direct), TenantID: uuid.New()}}}
	p.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, $2)`, p.TenantID, p.TenantID.String())
	p.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'secret'; GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]s; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO %[1]s`, role))
	t.Cleanup(func() { _, _ = p.DB.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	u.User = url.UserPassword(role, "secret")
	p.service = u.String()
	p.pooler = testenv.PgBouncer(t, p.service, poolerConnections, settings...)
	cfg.MaxConns, cfg.ReadConns = poolerClients/2, poolerClients/2
	p.Store = storetest.OpenURL(t, p.pooler.URL, cfg)
	return p
}

// oneAMinute allows each recipient a push a minute.
var oneAMinute = quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}

// errUnexpected reports an unexpected answer.
var errUnexpected = errors.New("unexpected")

// life runs three pushes of a new recipient through every operation, and returns the first error.
func (p *pooled) life(ctx context.Context, recipient string, accepted func(push.Push)) error {
	due := storetest.Draft(p.TenantID, recipient, time.Since(storetest.Began).Truncate(time.Second)-time.Second) // not from when the tests began: what is not delivered is overdue after five minutes
	batch := []booking.Draft{storetest.Draft(p.TenantID, recipient, time.Hour), storetest.Draft(p.TenantID, recipient, time.Hour+time.Minute)}
	for _, drafts := range [][]booking.Draft{{due}, batch} {
		v, err := p.Book(ctx, booking.Order{Drafts: drafts, Policy: oneAMinute})
		if err != nil {
			return fmt.Errorf("book: %w", err)
		}
		for _, d := range v {
			if d.Outcome != booking.Booked {
				return fmt.Errorf("%w: booked: %+v", errUnexpected, d)
			}
			accepted(d.Push)
		}
	}
	v, err := p.Book(ctx, booking.Order{Drafts: []booking.Draft{storetest.Draft(p.TenantID, recipient, time.Hour)}, Policy: oneAMinute})
	if err != nil || v[0].Outcome != booking.NoPlace {
		return cmp.Or(err, fmt.Errorf("%w: booked what is taken: %+v", errUnexpected, v))
	}
	moved := batch[0].Push
	moved.SendAt = moved.SendAt.Add(-10 * time.Minute)
	if v, err := p.Reschedule(ctx, booking.Order{Drafts: []booking.Draft{{Push: moved}}, Policy: oneAMinute}); err != nil || v.Outcome != booking.Booked {
		return cmp.Or(err, fmt.Errorf("%w: moved: %+v", errUnexpected, v))
	}
	if _, err := p.Cancel(ctx, p.TenantID, batch[1].Push.ID); err != nil {
		return fmt.Errorf("cancel: %w", err)
	}
	if err := p.deliver(ctx, due.Push); err != nil {
		return err
	}
	return p.look(ctx, due.Push)
}

// deliver claims and finishes a push that is due.
func (p *pooled) deliver(ctx context.Context, due push.Push) error {
	for {
		c, err := p.Claim(ctx, booking.ClaimOrder{RecipientKey: push.RecipientKey(p.TenantID, due.Recipient), Lease: time.Minute})
		switch {
		case err != nil:
			return fmt.Errorf("claim: %w", err)
		case c.Outcome == booking.Wait || c.Outcome == booking.Again:
			continue
		case c.Outcome != booking.Claimed || c.Push.ID != due.ID:
			return fmt.Errorf("%w: claimed %d, %s of %s", errUnexpected, c.Outcome, c.Push.ID, due.ID)
		}
		f := storetest.Sent
		f.Attempt = c.Attempted()
		if _, err = p.Finish(ctx, f); err != nil {
			return fmt.Errorf("finish: %w", err)
		}
		return nil
	}
}

// look reads the results by every method that reads.
func (p *pooled) look(ctx context.Context, done push.Push) error {
	after, err := p.Push(ctx, p.TenantID, done.ID)
	if err != nil || after.Status != push.Sent || len(after.Sends) != 1 {
		return cmp.Or(err, fmt.Errorf("%w: read: %+v", errUnexpected, after))
	}
	page, err := p.List(ctx, p.TenantID, push.Filter{Recipient: done.Recipient, Status: push.Canceled}, push.Position{}, 100)
	if err != nil || len(page.Pushes) != 1 {
		return cmp.Or(err, fmt.Errorf("%w: listed %d", errUnexpected, len(page.Pushes)))
	}
	held, _, err := p.Bookings(ctx, quota.Recipient{Tenant: p.TenantID, ID: done.Recipient}, storetest.Began.Add(-time.Hour), storetest.Began.Add(24*time.Hour), 100, false)
	if err != nil || len(held) != 2 {
		return cmp.Or(err, fmt.Errorf("%w: %d bookings", errUnexpected, len(held)))
	}
	lane := push.Lanes(1)[0]
	_, err1 := p.Pending(ctx, p.TenantID, 100)
	_, err2 := p.Ahead(ctx, []push.CountedLane{{Lane: lane}}, time.Hour)
	_, _, err3 := p.Due(ctx, storetest.EveryDue(5))
	_, err4 := p.Lost(ctx, []push.Lane{lane}, 5)
	_, err5 := p.Expire(ctx, []push.Lane{lane}, 0)
	_, err6 := p.Webhooks(ctx, p.TenantID)
	return errors.Join(err1, err2, err3, err4, err5, err6)
}

// poolers lists the settings of poolers that refuse parameters of a session, and of poolers that swallow them.
var poolers = map[string][]string{
	"refuses": nil,
	"ignores": {"ignore_startup_parameters = sendquota.direct,default_transaction_read_only,statement_timeout,idle_in_transaction_session_timeout," +
		"enable_seqscan,enable_hashjoin,enable_mergejoin,plan_cache_mode,jit,max_parallel_workers_per_gather"},
}

// TestPooler_Transactions checks that everything works through a PgBouncer that moves the transactions of sixteen
// connections between four, whether it refuses parameters of a session or swallows them.
func TestPooler_Transactions(t *testing.T) {
	t.Parallel()
	rounds := 10
	if testing.Short() {
		rounds = 3
	}
	for name, settings := range poolers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setupPooled(t, pg.Config{Lanes: 1}, settings...)
			hook := p.Hook(t, webhook.Events...)
			var (
				all      sync.WaitGroup
				accepted atomic.Int64
			)
			for i := range poolerClients {
				all.Go(func() {
					for round := range rounds {
						if err := p.life(t.Context(), fmt.Sprintf("r%d-%d", i, round), func(push.Push) { accepted.Add(1) }); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if n := storetest.Ask[int64](t, p.DB, `SELECT count(*) FROM pushes`); n != accepted.Load() || n != int64(poolerClients*rounds*3) {
				t.Errorf("%d pushes, and %d accepted", n, accepted.Load())
			}
			n := storetest.Ask[int](t, p.Watch, `SELECT count(*) FROM pg_stat_activity WHERE usename = $1`, p.role)
			if n == 0 || n > poolerConnections {
				t.Errorf("%d connections to Postgres", n)
			}
			if _, _, err := p.ClaimDeliveries(t.Context(), webhooks.ClaimLimits{Webhooks: 5, PerWebhook: 5, Lease: time.Minute}); err != nil {
				t.Error(err)
			}
			if page, err := p.Deliveries(t.Context(), p.TenantID, hook.ID, webhook.DeliveryFilter{}, 1<<62, 5); err != nil || len(page.Deliveries) == 0 {
				t.Errorf("%+v, %v", page, err)
			}
			p.MustAudit(t, oneAMinute)
		})
	}
}

// TestPooler_Settings checks that transactions through a pooler have the settings that sessions have without one,
// although the role has few privileges.
func TestPooler_Settings(t *testing.T) {
	t.Parallel()
	for name, settings := range poolers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setupPooled(t, pg.Config{Lanes: 1, Timeout: 5 * time.Second}, settings...) // idle transactions have twice as long
			p.Booked(t, "anna", time.Hour)
			later := testenv.PgBouncer(t, p.service, poolerConnections) // its connections begin after the role has its settings
			db := storetest.Connect(t, later.URL+"&default_query_exec_mode=exec")
			for name, want := range map[string]string{
				"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
				"plan_cache_mode": "force_generic_plan", "max_parallel_workers_per_gather": "0", "idle_in_transaction_session_timeout": "10s",
			} {
				if got := storetest.Ask[string](t, db, `SELECT current_setting($1)`, name); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
		})
	}
}

// TestPooler_Statements checks that no statement is prepared under a name of the client through a pooler. The next
// transaction may not find the name, or another client may have used it.
func TestPooler_Statements(t *testing.T) {
	t.Parallel()
	p := setupPooled(t, store.Config{})
	p.Exec(t, `CREATE TABLE names (name text PRIMARY KEY);
		CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN INSERT INTO names SELECT name FROM pg_prepared_statements ON CONFLICT DO NOTHING; RETURN NULL; END $$;
		CREATE TRIGGER note AFTER INSERT ON live EXECUTE FUNCTION note()`)
	for i := range 3 {
		p.Booked(t, fmt.Sprint("r", i), time.Hour)
	}
	if n := storetest.Ask[int](t, p.DB, `SELECT count(*) FROM names WHERE name NOT LIKE 'PGBOUNCER%'`); n > 0 {
		t.Errorf("%d statements were prepared", n)
	}
}

// TestPooler_Reads checks that Postgres ends slow reads through a pooler, too, and refuses reads that write.
func TestPooler_Reads(t *testing.T) {
	t.Parallel()
	wantCode := func(t *testing.T, err error, code string) {
		t.Helper()
		pgErr, ok := errors.AsType[*pgconn.PgError](err)
		if !ok || pgErr.Code != code || !errors.Is(err, push.ErrUnavailable) {
			t.Errorf("%v, want an error %s of Postgres", err, code)
		}
	}
	reads := func(p *pooled) map[string]func(ctx context.Context) error {
		return map[string]func(ctx context.Context) error{
			"push":    func(ctx context.Context) error { _, err := p.Push(ctx, p.TenantID, uuid.New()); return err },
			"pending": func(ctx context.Context) error { _, err := p.Pending(ctx, p.TenantID, 5); return err },
			"list": func(ctx context.Context) error {
				_, err := p.List(ctx, p.TenantID, push.Filter{}, push.Position{}, 5)
				return err
			},
		}
	}
	t.Run("long", func(t *testing.T) {
		t.Parallel()
		p := setupPooled(t, pg.Config{ReadTimeout: time.Second})
		for _, read := range reads(p) { // once, so that the types of its columns are known
			_ = read(t.Context())
		}
		p.Exec(t, `BEGIN; LOCK TABLE live, pushes`)
		for name, read := range reads(p) {
			t.Log(name)
			wantCode(t, read(t.Context()), "57014") // query_canceled
		}
	})
	t.Run("writing", func(t *testing.T) {
		t.Parallel()
		p := setupPooled(t, store.Config{})
		p.Exec(t, `CREATE FUNCTION write() RETURNS bool LANGUAGE sql VOLATILE SECURITY DEFINER AS $$ INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), gen_random_uuid()::text) RETURNING true $$;
			ALTER TABLE `+storetest.WeekOf("pushes", 0)+` ENABLE ROW LEVEL SECURITY; CREATE POLICY writing ON `+storetest.WeekOf("pushes", 0)+` USING (write())`)
		p.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, shard)
			SELECT gen_random_uuid(), $1, 1, 'r', 'log', '{}', s, s, s, s + interval '1 day', 'scheduled', 1 FROM (SELECT date_trunc('second', now()) AS s) s`, p.TenantID)
		_, err := p.List(t.Context(), p.TenantID, push.Filter{}, push.Position{}, 5)
		wantCode(t, err, "25006") // read_only_sql_transaction
		if n := storetest.Ask[int](t, p.DB, `SELECT count(*) FROM tenants`); n != 1 {
			t.Errorf("%d tenants: a read has written", n)
		}
	})
}

// TestPooler_Partitions checks that partitions are made and dropped through a pooler, too, while programs work.
// Statements that were prepared for dropped partitions cause no error.
func TestPooler_Partitions(t *testing.T) {
	t.Parallel()
	for name, settings := range poolers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := setupPooled(t, pg.Config{Lanes: 1}, settings...)
			p.Exec(t, `GRANT `+storetest.Ask[string](t, p.DB, `SELECT current_user::text`)+` TO `+p.role)
			var (
				working sync.WaitGroup
				stop    atomic.Bool
			)
			for i := range 3 {
				working.Go(func() {
					for round := 0; !stop.Load(); round++ {
						if err := p.life(t.Context(), fmt.Sprintf("r%d-%d", i, round), func(push.Push) {}); err != nil {
							t.Error(err)
							return
						}
						time.Sleep(10 * time.Millisecond) // leave the processors to others, too
					}
				})
			}
			for range 3 {
				p.Old(t)
				p.Exec(t, `DROP TABLE IF EXISTS `+storetest.WeekOf("pushes", -30*7*storetest.Day))
				if made, err := p.MakePartitions(t.Context()); err != nil || made == 0 {
					t.Errorf("made %d, %v", made, err)
				}
				storetest.Eventually(t, "all is dropped", func() bool { // each step waits for ten seconds at most
					dropped, err := p.DropPartitions(t.Context(), storetest.Kept)
					return err == nil && len(dropped) > 0 && !slices.Contains(p.MustPartitions(t), storetest.WeekOf("pushes", 150*storetest.Day))
				})
			}
			stop.Store(true)
			working.Wait()
			p.MustAudit(t, oneAMinute)
		})
	}
}

// TestPooler_Restarted checks that while PgBouncer is killed in a loop, acknowledged bookings are kept and all errors
// are [push.ErrUnavailable]. Afterwards everything works.
func TestPooler_Restarted(t *testing.T) {
	t.Parallel()
	p := setupPooled(t, store.Config{})
	var (
		workers  sync.WaitGroup
		mu       sync.Mutex
		accepted []push.Push
		failures atomic.Int64
		stop     atomic.Bool
	)
	for i := range poolerClients {
		workers.Go(func() {
			for round := 0; !stop.Load(); round++ {
				err := p.life(t.Context(), fmt.Sprintf("r%d-%d", i, round), func(one push.Push) {
					mu.Lock()
					defer mu.Unlock()
					accepted = append(accepted, one)
				})
				if errors.Is(err, push.ErrUnavailable) {
					failures.Add(1)
				} else if err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(accepted)
	}
	for range 3 {
		before := done()
		storetest.Eventually(t, "work is done", func() bool { return done() > before+40 })
		testenv.Check(t, p.pooler.Kill())
		testenv.Check(t, p.pooler.Restart(t.Context()))
	}
	before := done()
	storetest.Eventually(t, "work is done", func() bool { return done() > before+40 })
	stop.Store(true)
	workers.Wait()
	t.Logf("%d accepted, %d times unavailable", len(accepted), failures.Load())
	for _, one := range accepted {
		p.MustRead(t, one)
	}
	p.MustAudit(t, oneAMinute)
}

// TestPooler_StartedBefore checks that a store that started while PgBouncer could not reach Postgres works when it can.
func TestPooler_StartedBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("only `make test-all` waits until PgBouncer gives up")
	}
	t.Parallel()
	postgres := testenv.OwnPostgres(t)
	testenv.Check(t, postgres.Kill())
	pooler := testenv.PgBouncer(t, postgres.URL, poolerConnections)
	st := storetest.OpenURL(t, pooler.URL, pg.Config{Timeout: 5 * time.Second}) // PgBouncer itself waits for longer
	if _, err := st.Tenants(t.Context()); !errors.Is(err, push.ErrUnavailable) {
		t.Errorf("%v without Postgres", err)
	}
	testenv.Check(t, postgres.Restart(t.Context()))
	storetest.Eventually(t, "it works", func() bool {
		_, _, err := st.CreateTenant(t.Context(), "acme")
		return err == nil
	})
}

// TestMigrate_Pooled checks that a migration through a pooler returns an error and changes nothing.
func TestMigrate_Pooled(t *testing.T) {
	t.Parallel()
	direct := testenv.Postgres(t)
	pooler := testenv.PgBouncer(t, direct, poolerConnections)
	applied, err := pg.Migrate(t.Context(), pooler.URL, pg.MigrateConfig{Files: later(t, map[string]string{"9001_wide.sql": wideMigration})})
	if !errors.Is(err, pg.ErrPooled) || applied != nil {
		t.Errorf("applied %v, %v", applied, err)
	}
	if storetest.Ask[bool](t, storetest.Connect(t, direct), `SELECT EXISTS (SELECT FROM pg_attribute WHERE attrelid = 'pushes'::regclass AND attname = 'wide')`) {
		t.Error("it was migrated all the same")
	}
}

// TestStore_StatementsLost checks that the store recovers from a session without its prepared statements, or with other
// statements under their names. That happens behind a pooler that was not recognized.
func TestStore_StatementsLost(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]string{
		"forgotten": `EXECUTE 'DEALLOCATE ALL'`,
		"there":     `FOR s IN SELECT name FROM names LOOP BEGIN EXECUTE format('PREPARE %I AS SELECT 1', s); EXCEPTION WHEN duplicate_prepared_statement THEN NULL; END; END LOOP`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Exec(t, `CREATE TABLE names (name text PRIMARY KEY);
				CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO names SELECT name FROM pg_prepared_statements ON CONFLICT DO NOTHING; RETURN NULL; END $$;
				CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ DECLARE s text; BEGIN `+spoil+`; RETURN NULL; END $$;
				CREATE TRIGGER note AFTER INSERT ON live EXECUTE FUNCTION note();
				CREATE TRIGGER spoil AFTER INSERT ON tenants EXECUTE FUNCTION spoil()`)
			b.Booked(t, "anna", time.Hour)
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM names WHERE name LIKE 'stmtcache%'`); n < 5 {
				t.Errorf("%d statements were prepared", n)
			}
			b.Store = storetest.OpenURL(t, b.URL, pg.Config{MaxConns: 1})
			if name == "forgotten" {
				b.Booked(t, "bert", time.Hour)
			}
			if _, _, err := b.CreateTenant(t.Context(), "spoils its session"); err != nil {
				t.Fatal(err)
			}
			b.Booked(t, "carl", time.Hour)
			b.Exec(t, `TRUNCATE names`)
			b.Booked(t, "dora", time.Hour)
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM names`); n > 0 {
				t.Errorf("%d statements are prepared all the same", n)
			}
		})
	}
}
