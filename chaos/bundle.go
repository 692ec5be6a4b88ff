package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// bundle is one installation of sendquota, its provider and its callers.
type bundle struct {
	*testenv.Installation
	config
	lab        *lab
	mutant     string            // path of a mutated api or worker; empty: none
	toRedis    *faultproxy.Proxy // nil: the programs connect directly
	addrs      []string          // of the APIs
	provider   *testenv.Provider
	programs   []*program
	history    *history
	teams      *teams  // nil: there are none
	upkeep     *upkeep // nil: workers do none, besides partitions ahead
	paused     []pausedSpan
	suppressed []suppressed
}

// rule is a rule of the quota, for the checks of this program.
type rule struct {
	limit  int
	window time.Duration
}

// The two ways to divide the work among the programs: transactions cover a range of shards, or one shard each.
const fewLanes, everyShard = 4, push.Shards

// config configures a bundle.
type config struct {
	name            string
	database, redis string   // URLs; empty: in the servers that are shared
	env             []string // of api and worker, besides
	rules           []rule
	lease           time.Duration // and two fifths of it are the channels' time-out
	armLease        time.Duration
	ttl             time.Duration
	lanes           int           // into which the programs divide all recipients
	horizon         time.Duration // how long before its time a push is armed; 0: 5 s
	conns           int           // of each program to Postgres, for what changes something; 0: by default
	apis            int
	behaviour       string        // of the provider, see provider.go
	audit           time.Duration // how often workers audit; 0: never
	kept            time.Duration // what has ended; 0: for as long as by default
}

// setup makes a bundle and starts its provider. The caller starts the programs,
// which end with the test.
func (l *lab) setup(t testenv.T, c config) *bundle {
	dir := filepath.Join(l.dir, c.name)
	testenv.Check(t, os.MkdirAll(dir, 0o700))
	b := &bundle{config: c, lab: l, history: newHistory()}
	b.provider = testenv.StartProvider(t, dir, "BEHAVIOUR="+c.behaviour, fmt.Sprint("SEED=", l.seed))
	i := testenv.Config{Programs: l.programs, Dir: dir, Database: c.database, Redis: c.redis, Settings: c.yaml(b.provider.URL())}
	if c.database == "" {
		i.Database, i.Redis, i.Migrated = l.servers.Postgres(t), l.servers.Redis(t), true
	}
	b.Installation = testenv.Install(t, i)
	for b.addrs = []string{b.Addr}; len(b.addrs) < c.apis; {
		b.addrs = append(b.addrs, testenv.FreeAddr(t))
	}
	testenv.Finally(t, b.stop)
	return b
}

// small returns a bundle with short windows on the shared servers. Its programs have few connections, because each
// costs a small machine a tenth of a second.
func small(name string, lanes int) config {
	return config{
		name: name, lanes: lanes, rules: []rule{{1, 2 * time.Second}, {4, 20 * time.Second}},
		lease: time.Second, armLease: time.Second, ttl: 5 * time.Minute, conns: 8, apis: 1,
	}
}

// yaml has two channels to the same provider: one tries again after an unknown
// outcome, one does not.
func (c config) yaml(provider string) string {
	var text strings.Builder
	text.WriteString("policy:\n  rules:\n")
	for i, r := range c.rules {
		fmt.Fprintf(&text, "    - {name: rule-%d, limit: %d, window: %s}\n", i, r.limit, r.window)
	}
	fmt.Fprintf(&text, `http: {drain: 0s}
channels:
  push: {type: webhook, url: %[1]q, allow_private_addresses: true, timeout: %[2]s, max_attempts: 20, backoff: {first: 200ms, max: 800ms}}
  once: {type: webhook, url: %[1]q, allow_private_addresses: true, timeout: %[2]s, max_attempts: 20, backoff: {first: 200ms, max: 800ms}, on_unknown: fail}
  hidden: {type: webhook, url: %[1]q, allow_private_addresses: true, timeout: %[2]s, max_attempts: 20, backoff: {first: 200ms, max: 800ms}}
tenant_channels: {allow_private_addresses: true}
delivery: {lease: %[3]s, arm_lease: %[4]s, default_ttl: %[5]s, redis_patience: 2s, horizon: %[8]s, concurrency: 256, audit_interval: %[7]s, lanes: %[6]d}
`, provider, c.lease*2/5, c.lease, c.armLease, c.ttl, cmp.Or(c.lanes, fewLanes), c.audit, cmp.Or(c.horizon, 5*time.Second))
	if c.conns > 0 {
		fmt.Fprintf(&text, "database: {max_connections: %d, read_connections: 2}\n", c.conns)
	}
	if c.kept > 0 {
		fmt.Fprintf(&text, "retention: {pushes: %[1]s, sends: %[1]s, audit_log: %[1]s}\n", c.kept)
	}
	return text.String()
}

// startAPI starts the n-th API and waits until it is ready.
func (b *bundle) startAPI(n int, faults ...string) *program {
	p := b.startProgram("api", faults, "SENDQUOTA_ADDR="+b.addrs[n])
	testenv.Check(b, p.process().AwaitListen(b.Context(), b.addrs[n]))
	return p
}

func (b *bundle) startWorker(faults []string, env ...string) *program {
	return b.startProgram("worker", faults, env...)
}

// stop ends all programs, the youngest first.
func (b *bundle) stop() (err error) {
	for _, p := range slices.Backward(b.programs) {
		err = errors.Join(err, p.stop())
	}
	return err
}

// said returns how often the programs have written a text.
func (b *bundle) said(text string) int {
	n := 0
	for _, p := range b.programs {
		n += p.said(text)
	}
	return n
}

// flush makes Redis forget everything.
func (b *bundle) flush() {
	testenv.Check(b, testenv.RedisClient(b, b.Redis).FlushDB(b.Context()).Err())
}

// settle waits until every push that is due before a time has ended, see await.
func (b *bundle) settle(before time.Time, timeout time.Duration) (left int) {
	return b.await(timeout, `SELECT count(*) FROM pushes WHERE status IN ('scheduled', 'sending') AND send_at < $1`, before)
}

// await waits until a query returns 0, and returns the last result. It gives up after a time without any progress, so
// the speed of the machine does not matter.
func (b *bundle) await(timeout time.Duration, count string, args ...any) (left int) {
	conn := testenv.Connect(b, b.Database)
	went := b.wentOn(conn)
	for deadline := time.Now().Add(timeout); ; testenv.Sleep(b, 50*time.Millisecond) {
		testenv.Check(b, conn.QueryRow(b.Context(), count, args...).Scan(&left))
		if left == 0 {
			return 0
		}
		if time.Now().After(deadline) {
			before := went
			if went = b.wentOn(conn); went == before {
				return left
			}
			deadline = time.Now().Add(timeout)
		}
	}
}

// wentOn counts begun and ended attempts. It differs if something happened in between.
func (b *bundle) wentOn(conn *pgx.Conn) (n [5]int) {
	testenv.Check(b, conn.QueryRow(b.Context(), `SELECT
		(SELECT count(*) + count(*) FILTER (WHERE status NOT IN ('scheduled', 'sending')) FROM pushes),
		(SELECT count(*) + count(ended_at) FROM sends),
		(SELECT count(*) + count(outcome) FROM campaign_recipients),
		(SELECT count(*) + count(outcome) FROM schedule_runs),
		(SELECT count(*) + count(*) FILTER (WHERE outcome <> '') FROM bulk_change_pushes)`).Scan(&n[0], &n[1], &n[2], &n[3], &n[4]))
	return n
}

// pass lets time pass.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
