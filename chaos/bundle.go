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
	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// bundle is one installation of sendquota, its provider and its callers.
type bundle struct {
	lab      *lab
	name     string
	dir      string
	database string            // as this program sees it
	redis    string            //
	toRedis  *faultproxy.Proxy // nil: the programs connect directly
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

// config is what a bundle is made from.
type config struct {
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

// setup migrates nothing and starts nothing but the provider: the programs
// are up to the caller.
func (l *lab) setup(ctx context.Context, c config) (*bundle, error) {
	b := &bundle{lab: l, name: c.name, dir: filepath.Join(l.dir, c.name), database: c.database, redis: c.redis, rules: c.rules, history: newHistory()}
	if err := os.MkdirAll(b.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if b.provider, err = l.startProvider(ctx, b.dir, c.provider); err != nil {
		return nil, err
	}
	file := filepath.Join(b.dir, "sendquota.yaml")
	if err := os.WriteFile(file, []byte(c.yaml(b.provider.url())), 0o600); err != nil {
		return nil, err
	}
	b.env = append(c.env[:len(c.env):len(c.env)], "DATABASE_URL="+or(c.programDatabase, c.database), "REDIS_URL="+or(c.programRedis, c.redis), "SENDQUOTA_CONFIG="+file)
	for range c.apis {
		addr, err := process.FreeAddr()
		if err != nil {
			return nil, err
		}
		b.addrs = append(b.addrs, addr)
	}
	if _, err := b.operate(ctx, "tenants", "create", "chaos"); err != nil {
		return nil, err
	}
	b.key, err = b.operate(ctx, "keys", "create", "--tenant", "chaos")
	return b, err
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
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
delivery: {lease: %[3]s, arm_lease: %[4]s, default_ttl: %[5]s, redis_patience: 2s, horizon: 5s, concurrency: 256, audit_interval: 0s}
`, provider, c.lease*2/5, c.lease, c.armLease, c.ttl)
	return text.String()
}

// startAPI starts the n-th API and waits until it answers.
func (b *bundle) startAPI(ctx context.Context, n int, faults ...string) (*program, error) {
	p, err := b.startProgram("api", faults, "SENDQUOTA_ADDR="+b.addrs[n])
	if err != nil {
		return nil, err
	}
	return p, p.process().AwaitListen(ctx, b.addrs[n])
}

func (b *bundle) startWorker(faults []string, env ...string) (*program, error) {
	return b.startProgram("worker", faults, env...)
}

// stop ends all programs, the youngest first, and the provider.
func (b *bundle) stop() error {
	var err error
	for i := len(b.programs) - 1; i >= 0; i-- {
		if p := b.programs[i]; !p.isAway() {
			err = errors.Join(err, p.stop())
		}
	}
	return errors.Join(err, b.provider.process.Kill())
}

// said counts how often programs have written a text.
func (b *bundle) said(text string) int {
	n := 0
	for _, p := range b.programs {
		n += p.said(text)
	}
	return n
}

// flush has Redis forget everything.
func (b *bundle) flush(ctx context.Context) error {
	o, err := redis.ParseURL(b.redis)
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
func (b *bundle) operate(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.lab.programs, "sendquota"), args...)
	cmd.Env = append(b.env[:len(b.env):len(b.env)], "DATABASE_URL="+b.database)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("sendquota %s: %w\n%s%s", strings.Join(args, " "), err, out, problem.String())
	}
	return strings.TrimSpace(string(out)), nil
}
