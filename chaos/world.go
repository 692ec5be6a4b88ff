package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/wire"
)

// world is one installation of sendquota, its provider and its callers.
type world struct {
	lab      *lab
	name     string
	dir      string
	mutant   string     // path of the api or worker to run in place of the lab's; empty: neither
	database string     // as this program sees it
	redis    string     //
	toRedis  *wire.Wire // nil: the way is straight
	env      []string
	rules    []rule
	key      string
	addrs    []string // of the APIs
	provider *provider
	programs []*program
	started  int
	history  *history
}

// rule is one of the quota's, for the checks of this program.
type rule struct {
	limit  int
	window time.Duration
}

// setting is what a world is made from.
type setting struct {
	name            string
	database, redis string        // as this program sees them
	programDatabase string        // as the programs see it; empty: the same
	programRedis    string        //
	rules           []rule        //
	lease           time.Duration // and half of it is the channel's timeout
	armLease        time.Duration
	ttl             time.Duration
	apis            int
	provider        string // how the provider behaves, see provider.go
	env             []string
}

// newWorld migrates nothing and starts nothing but the provider: the programs
// are up to the caller.
func (l *lab) newWorld(ctx context.Context, s setting) (*world, error) {
	w := &world{lab: l, name: s.name, dir: filepath.Join(l.dir, s.name), database: s.database, redis: s.redis, rules: s.rules, history: newHistory()}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if w.provider, err = l.startProvider(ctx, w.dir, s.provider); err != nil {
		return nil, err
	}
	file := filepath.Join(w.dir, "sendquota.yaml")
	if err := os.WriteFile(file, []byte(s.yaml(w.provider.url())), 0o600); err != nil {
		return nil, err
	}
	w.env = append(s.env[:len(s.env):len(s.env)], "DATABASE_URL="+or(s.programDatabase, s.database), "REDIS_URL="+or(s.programRedis, s.redis), "SENDQUOTA_CONFIG="+file)
	for range s.apis {
		addr, err := process.FreeAddr()
		if err != nil {
			return nil, err
		}
		w.addrs = append(w.addrs, addr)
	}
	if _, err := w.operate(ctx, "tenants", "create", "chaos"); err != nil {
		return nil, err
	}
	w.key, err = w.operate(ctx, "keys", "create", "--tenant", "chaos")
	return w, err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// yaml has two channels to the same provider: one tries again after an unknown
// outcome, one does not.
func (s setting) yaml(provider string) string {
	var text strings.Builder
	text.WriteString("policy:\n  rules:\n")
	for i, r := range s.rules {
		fmt.Fprintf(&text, "    - {name: rule-%d, limit: %d, window: %s}\n", i, r.limit, r.window)
	}
	fmt.Fprintf(&text, `http: {drain: 0s}
channels:
  push: {type: webhook, url: %[1]q, allow_private_addresses: true, timeout: %[2]s, max_attempts: 20, backoff: {first: 200ms, max: 800ms}}
  once: {type: webhook, url: %[1]q, allow_private_addresses: true, timeout: %[2]s, max_attempts: 20, backoff: {first: 200ms, max: 800ms}, on_unknown: fail}
delivery: {lease: %[3]s, arm_lease: %[4]s, default_ttl: %[5]s, redis_patience: 2s, horizon: 5s, concurrency: 256, audit_interval: 0s}
`, provider, s.lease*2/5, s.lease, s.armLease, s.ttl)
	return text.String()
}

// startAPI starts the n-th API and waits until it answers.
func (w *world) startAPI(ctx context.Context, n int, faults ...string) (*program, error) {
	p, err := w.startProgram("api", faults, "SENDQUOTA_ADDR="+w.addrs[n])
	if err != nil {
		return nil, err
	}
	return p, p.process().Listens(ctx, w.addrs[n])
}

func (w *world) startWorker(faults []string, env ...string) (*program, error) {
	return w.startProgram("worker", faults, env...)
}

// stop ends all programs, the youngest first, and the provider.
func (w *world) stop() error {
	var err error
	for i := len(w.programs) - 1; i >= 0; i-- {
		if p := w.programs[i]; !p.isAway() {
			err = errors.Join(err, p.stop())
		}
	}
	w.provider.process.Kill()
	return err
}

// said counts how often programs have written a text.
func (w *world) said(text string) int {
	n := 0
	for _, p := range w.programs {
		n += p.said(text)
	}
	return n
}

// flush has Redis forget everything.
func (w *world) flush(ctx context.Context) error {
	o, err := redis.ParseURL(w.redis)
	if err != nil {
		return err
	}
	client := redis.NewClient(o)
	defer client.Close()
	return client.FlushDB(ctx).Err()
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

// operate runs the operator's tool.
func (w *world) operate(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(w.lab.programs, "sendquota"), args...)
	cmd.Env = append(w.env[:len(w.env):len(w.env)], "DATABASE_URL="+w.database)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("sendquota %s: %w\n%s%s", strings.Join(args, " "), err, out, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}
