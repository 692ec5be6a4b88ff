package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// fault is a fault of a server or a program. do returns when it is over.
type fault struct {
	name string
	do   func(ctx context.Context) error
}

// redisFaults lists the faults of Redis.
func redisFaults(b *bundle, s *devstack.Server, p *faultproxy.Proxy) []fault {
	client := testenv.RedisClient(b, s.URL+"?max_retries=-1")
	tell := func(ctx context.Context, args ...any) error { return client.Do(ctx, args...).Err() }
	between := func(before []any, d time.Duration, after []any) func(context.Context) error {
		return func(ctx context.Context) error {
			if err := tell(ctx, before...); err != nil {
				return err
			}
			_ = pass(ctx, d)
			return tell(context.WithoutCancel(ctx), after...)
		}
	}
	again := func(ctx context.Context, away time.Duration) error {
		if err := s.Kill(); err != nil {
			return err
		}
		_ = pass(ctx, away)
		return s.Restart(context.WithoutCancel(ctx))
	}
	return []fault{
		{"Redis flushed", func(ctx context.Context) error { return tell(ctx, "FLUSHALL") }},
		{"Redis killed, back empty", func(ctx context.Context) error { return again(ctx, 300*time.Millisecond) }},
		{"Redis away for longer than workers wait", func(ctx context.Context) error { return again(ctx, 4*time.Second) }},
		{"Redis frozen", func(ctx context.Context) error { return frozen(ctx, s.Pause, s.Resume, 2*time.Second) }},
		{"Redis out of memory", between([]any{"CONFIG", "SET", "maxmemory", "1"}, 4*time.Second, []any{"CONFIG", "SET", "maxmemory", "0"})},
		{"Redis refuses scripts", between([]any{"ACL", "SETUSER", "default", "-@scripting"}, 4*time.Second, []any{"ACL", "SETUSER", "default", "+@all"})},
		{"Redis back from an old snapshot", func(ctx context.Context) error {
			if err := tell(ctx, "SAVE"); err != nil {
				return err
			}
			_ = pass(ctx, 2*time.Second)
			return again(ctx, 0)
		}},
		{"Redis' replies lost", func(context.Context) error { p.LoseAll(300 * time.Millisecond); return nil }},
	}
}

func frozen(ctx context.Context, freeze, thaw func() error, d time.Duration) error {
	if err := freeze(); err != nil {
		return err
	}
	_ = pass(ctx, d)
	return thaw()
}

// postgresFaults lists the faults of Postgres. In a long run, one of them is a silence as long as in real operation.
func postgresFaults(s *devstack.Server, p *faultproxy.Proxy, long bool) []fault {
	silences := 0
	return []fault{
		{"Postgres killed and restarted at once", func(ctx context.Context) error {
			if err := s.Kill(); err != nil {
				return err
			}
			return s.Restart(context.WithoutCancel(ctx))
		}},
		{"Postgres backends terminated", func(ctx context.Context) error {
			for range 10 { // in different states of their transactions
				if err := terminate(ctx, s.URL); err != nil {
					return err
				}
				_ = pass(ctx, 50*time.Millisecond)
			}
			return nil
		}},
		{"Postgres silent", func(ctx context.Context) error {
			if silences++; long && silences%8 == 3 {
				return frozen(ctx, s.Pause, s.Resume, 40*time.Second)
			}
			return frozen(ctx, s.Pause, s.Resume, 3*time.Second)
		}},
		{"Postgres without a connection left", func(ctx context.Context) error { return exhaust(ctx, s.URL, 2*time.Second) }},
		{"Postgres' replies lost", func(context.Context) error { p.LoseAll(300 * time.Millisecond); return nil }},
	}
}

func terminate(ctx context.Context, url string) error {
	return devstack.Exec(ctx, url, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'sendquota'`)
}

// exhaust takes every available connection.
func exhaust(ctx context.Context, url string, d time.Duration) error {
	var taken []*pgx.Conn
	defer func() {
		for _, c := range taken {
			_ = c.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := terminate(ctx, url); err != nil {
		return err
	}
	for deadline := time.Now().Add(d); time.Now().Before(deadline) && ctx.Err() == nil; {
		c, err := pgx.Connect(ctx, url)
		if err != nil {
			_ = pass(ctx, 10*time.Millisecond)
			continue
		}
		taken = append(taken, c)
	}
	return nil
}

// processFaults lists the faults of the programs.
func processFaults(apis, workers []*program, lease time.Duration, rng *rand.Rand) []fault {
	one := func(ps []*program) *program { return ps[rng.IntN(len(ps))] }
	end := func(s syscall.Signal, ps ...*program) (err error) {
		for _, p := range ps {
			err = errors.Join(err, p.process().Signal(s))
		}
		return err
	}
	freeze := func(ctx context.Context, p *program, d time.Duration) error {
		current := p.process()
		return frozen(ctx, current.Freeze, current.Thaw, d)
	}
	return []fault{
		{"api killed", func(context.Context) error { return end(syscall.SIGKILL, one(apis)) }},
		{"worker killed", func(context.Context) error { return end(syscall.SIGKILL, one(workers)) }},
		{"all workers killed", func(context.Context) error { return end(syscall.SIGKILL, workers...) }},
		{"worker frozen beyond its lease", func(ctx context.Context) error { return freeze(ctx, one(workers), lease*2) }},
		{"api frozen", func(ctx context.Context) error { return freeze(ctx, one(apis), 1500*time.Millisecond) }},
		{"worker stopped while it sends", func(context.Context) error { return end(syscall.SIGTERM, one(workers)) }},
		{"api stopped", func(context.Context) error { return end(syscall.SIGTERM, one(apis)) }},
		{"all workers away, a backlog", func(ctx context.Context) error {
			var g errgroup.Group
			for _, p := range workers {
				g.Go(func() error { return freeze(ctx, p, 4*time.Second) })
			}
			return g.Wait()
		}},
	}
}

// outerFaults lists the faults of the provider and of the queue.
func outerFaults(b *bundle) []fault {
	wakeUps := testenv.RedisClient(b, b.Redis)
	return []fault{
		{"provider away", func(ctx context.Context) error {
			if err := b.provider.Kill(); err != nil {
				return err
			}
			_ = pass(ctx, time.Second)
			b.provider.Start()
			return nil
		}},
		{"wake-ups early, late, doubled and stale", func(ctx context.Context) error { return strayWakeUps(ctx, b.Database, wakeUps) }},
	}
}

// strayWakeUps puts wake-ups into the queue that no worker should follow.
func strayWakeUps(ctx context.Context, database string, client redisclient.Client) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return nil // which is down: another time
	}
	defer conn.Close(ctx)
	name, err := pg.InstallationName(ctx, conn)
	if err != nil {
		return nil
	}
	var stray []push.WakeUp
	for range 20 {
		lanes := push.Lanes(1 << rand.IntN(9)) // of any size, whatever the workers' is
		w := push.WakeUp{Lane: lanes[rand.IntN(len(lanes))], At: time.Now().Add(time.Duration(rand.IntN(20)-10) * time.Second), Part: rand.IntN(3)}
		soon := w
		soon.In = 3 * time.Second
		stray = append(stray, w, soon) // In is 0: at once, whatever their time is
	}
	_ = queue.New(client, 1, func() (string, bool) { return name, true }).Arm(ctx, stray)
	return nil
}
