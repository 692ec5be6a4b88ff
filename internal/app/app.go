// Package app wires the parts into programs: the API, the worker, or both in
// one process.
package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/httpapi"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// App holds what the API and the worker share. Both may run in one App.
type App struct {
	cfg      config.Config
	log      *slog.Logger
	metrics  *telemetry.Metrics
	gauges   telemetry.Gauges
	policy   quota.Policy
	channels *channel.Set
	redis    redisClients
	store    *store.Store
	cache    *quota.Cache
	takes    *ratelimit.Limiter
	callers  httpapi.CallerLimits
	queue    *queue.Queue
	poller   *schedule.Poller
	health   *health.Checker
	stopping atomic.Bool // the program has been told to stop
}

// How much of Redis' time tenants' takes may have under way in this process, all
// together and those of one tenant: what they ask for is theirs to choose, and
// whoever else asks Redis waits for no more than that.
const (
	takesWork  = 2 * time.Millisecond
	tenantWork = time.Millisecond
)

// Open builds the parts. It succeeds while Postgres and Redis are down: they
// are asked when they are needed. Close it after everything has stopped.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	a := &App{cfg: cfg, log: log, metrics: telemetry.NewMetrics(), policy: Policy(cfg.Policy)}
	var err error
	if a.channels, err = channels(cfg.Channels, log); err != nil {
		return nil, err
	}
	if a.callers, err = callerLimits(cfg.APILimits, a.metrics.LimitsSkipped); err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log}) // it is one for the whole process
	if a.redis, err = openRedis(string(cfg.RedisURL), cfg.Redis.MaxConnections); err != nil {
		return nil, err
	}
	a.store, err = store.Open(ctx, string(cfg.DatabaseURL), store.Config{
		Observe: a.metrics.Grouped, Channels: a.channels.Names(),
		MaxConns: cfg.Database.MaxConnections, ReadConns: cfg.Database.ReadConnections, ReadTimeout: cfg.Database.ReadTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, a.redis.close())
	}
	_ = a.store.Identify(ctx) // else it is asked again when the name is needed
	a.cache = quota.NewCache(a.redis.cache, a.runner("ledger", a.cacheFailed))
	a.callers.Limiter = ratelimit.New(a.redis.callers, ratelimit.Config{Config: a.runner("callers", a.limiterFailed)})
	a.takes = ratelimit.New(a.redis.takes, ratelimit.Config{Config: a.runner("limits", a.limiterFailed), Work: takesWork, OwnerWork: tenantWork})
	a.queue = queue.New(a.redis.queue, cfg.Delivery.Queues, a.store.Installation)
	a.gauges = telemetry.Gauges{Backlog: a.store.Backlog, Webhooks: a.store.WebhookBacklog, QueueSizes: a.queue.Sizes, Postgres: a.store.Ready, Redis: a.queue.Works}
	a.health = health.New(health.Config{
		Postgres: a.store.Ready, Redis: a.queue.Works, Overdue: a.store.Overdue, Patience: cfg.Delivery.ArmLease, Stopping: a.stopping.Load,
	})
	return a, nil
}

// runner is how a part asks Redis. The metrics call the part by this name.
func (a *App) runner(part string, failed func(error)) redisscript.Config {
	return redisscript.Config{Installation: a.store.Installation, OnError: failed, Observe: func(calls int) { a.metrics.Grouped(part, calls) }}
}

// Close closes the connections.
func (a *App) Close() error {
	a.store.Close()
	return a.redis.close()
}

func (a *App) cacheFailed(err error) {
	a.metrics.CacheFailed()
	a.log.Warn("the quota cache does without Redis; Postgres decides alone", "error", err)
}

func (a *App) paceFailed(err error) {
	a.metrics.PaceFailed()
	a.log.Warn("channels do without Redis: each worker keeps to a share of their speed", "error", err)
}

func (a *App) limiterFailed(err error) {
	a.metrics.LimiterFailed()
	a.log.Warn("no decision about speed limits", "error", err)
}

// Handler returns the API as a handler.
func (a *App) Handler() http.Handler {
	service := schedule.New(a.store, a.cache, a.queue, a.log, a.metrics, time.Now, schedule.Config{
		Policy:     a.policy,
		Channels:   a.channels.Names(),
		DefaultTTL: a.cfg.Delivery.DefaultTTL,
		MaxHorizon: a.cfg.Delivery.MaxHorizon,
		ArmLease:   a.cfg.Delivery.ArmLease,
		Caps:       push.Caps(a.cfg.TenantCaps),
		Check:      a.channels.Check,
	})
	webhooks := notify.NewWebhooks(a.store, notify.WebhooksConfig{
		MaxPerTenant: a.cfg.Webhooks.MaxPerTenant, AllowPrivateAddresses: a.cfg.Webhooks.AllowPrivateAddresses,
	})
	return httpapi.New(service, a.store, httpapi.Config{
		Webhooks: webhooks,
		Memory:   requestMemory(),
		Log:      a.log,
		Limiter:  a.takes,
		Callers:  a.callers,
		Health:   a.health,
		Stopping: a.stopping.Load,
		Metrics:  a.metrics.Handler(),
		Observe:  a.metrics.Requested,
	})
}

// RunAPI serves the API on the configured address until ctx ends, and then for
// as long as HTTP.Drain says; requests under way are answered.
func (a *App) RunAPI(ctx context.Context) error {
	return a.runAPI(ctx, nil)
}

func (a *App) runAPI(ctx context.Context, ready chan<- string) error {
	a.metrics.Watch(a.gauges)
	ctx, cancel := a.drain(ctx)
	defer cancel()
	return a.serve(ctx, "api", config.AddrVariable, a.cfg.Addr, a.Handler(), ready)
}

// RunWorker delivers pushes until ctx ends; attempts under way are carried to
// their end.
func (a *App) RunWorker(ctx context.Context) error {
	context.AfterFunc(ctx, func() { a.stopping.Store(true) })
	g, ctx := errgroup.WithContext(ctx)
	a.startWorker(g, ctx)
	if a.cfg.MetricsAddr != "" {
		gauges := a.gauges
		gauges.Polling = a.poller.Polling
		a.metrics.Watch(gauges)
		g.Go(func() error {
			return a.serve(ctx, "worker metrics", config.MetricsAddrVariable, a.cfg.MetricsAddr, a.metricsOnly(), nil)
		})
	}
	a.log.Info("worker started", "concurrency", a.cfg.Delivery.Concurrency)
	return g.Wait()
}

// RunBoth runs the API and a worker in one process. It tells ready the API's
// address as soon as that answers.
func (a *App) RunBoth(ctx context.Context, ready chan<- string) error {
	g, ctx := errgroup.WithContext(ctx)
	a.startWorker(g, ctx)
	a.gauges.Polling = a.poller.Polling
	g.Go(func() error { return a.runAPI(ctx, ready) })
	return g.Wait()
}

// startWorker starts everything that a worker does.
func (a *App) startWorker(g *errgroup.Group, ctx context.Context) {
	d := a.cfg.Delivery
	worker := delivery.New(a.store, a.cache, a.channels, a.log, a.metrics, delivery.Config{
		Policy: a.policy, Lease: d.Lease, Concurrency: d.Concurrency, Pacer: pace.New(a.redis.pace, a.store.Installation, uuid.NewString(), a.paceFailed),
	})
	a.gauges.Waiting, a.gauges.Held = worker.Waiting, worker.Held
	promoter := &schedule.Promoter{Store: a.store, Queue: a.queue, Log: a.log, Horizon: d.Horizon, Lease: d.ArmLease,
		Busy: func() []push.Source { return worker.Busy(0) }}
	expirer := &schedule.Expirer{Store: a.store, Cache: a.cache, Log: a.log, Expired: a.metrics.Expired}
	reaper := &schedule.Reaper{
		Store: a.store, Cache: a.cache, Log: a.log, Lost: a.metrics.Lost,
		Interval: min(time.Second, d.Lease/4), Retry: a.retry,
	}
	a.poller = &schedule.Poller{
		Store: a.store, Works: a.queue.Works, Handle: worker.Handle, Log: a.log,
		Patience: d.RedisPatience, Linger: d.ArmLease, Overdue: d.ArmLease, Found: a.metrics.FoundOverdue, Concurrency: d.Concurrency,
		Busy: func() []push.Source { return worker.Busy(5 * d.Concurrency) },
	}
	if d.AuditInterval > 0 {
		auditor := &schedule.Auditor{Store: a.store, Log: a.log, Policy: a.policy, Interval: d.AuditInterval, Audited: a.metrics.Audited}
		g.Go(func() error { return auditor.Run(ctx) })
	}
	hooks := a.cfg.Webhooks
	notifier := notify.New(a.store, a.log, a.metrics, time.Now, notify.Config{
		Timeout: hooks.Timeout, AllowPrivateAddresses: hooks.AllowPrivateAddresses, DisableAfter: hooks.DisableAfter,
	})
	sweeper := &schedule.Sweeper{Store: a.store, Log: a.log, Keep: hooks.Retention}
	for _, run := range []func(context.Context) error{promoter.Run, expirer.Run, reaper.Run, a.poller.Run, worker.Run, notifier.Run, sweeper.Run} {
		g.Go(func() error { return run(ctx) })
	}
	g.Go(func() error {
		return a.queue.Serve(ctx, queue.ServerConfig{Concurrency: d.Concurrency, Drain: d.Lease, Log: a.log}, worker.Handle)
	})
}

// retry says how a channel tries again. One that was taken out of the
// configuration does so as others do by default.
func (a *App) retry(name string) push.Retry {
	if entry, ok := a.channels.Get(name); ok {
		return entry.Retry
	}
	return push.Retry{MaxAttempts: 8, First: 5 * time.Second, Max: 15 * time.Minute}
}

func (a *App) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, `{"status":"ok"}`) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		report := a.health.Check(r.Context())
		w.Header().Set("Content-Type", "application/json")
		if !report.Serves() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(report) // a caller that went away needs no answer
	})
	return mux
}
