// Package app wires the parts into programs: the API, the worker, or both in one process.
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

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/httpapi"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// App holds the parts that the API and the worker share. Both may run in one App.
type App struct {
	cfg      config.Config
	log      *slog.Logger
	metrics  *telemetry.Metrics
	channels *channel.Set
	redis    redisClients
	store    *store.Store
	cache    *quota.Cache
	takes    *ratelimit.Limiter
	callers  httpapi.CallerLimits
	queue    *queue.Queue
	health   *health.Checker
	stopping *atomic.Bool // the program has been told to stop
}

// Bounds of the time of Redis that tenants' takes may have under way in this process, all together and for each
// tenant: tenants choose what they ask, and all other users of Redis wait for no more than that.
const (
	takesWork  = 2 * time.Millisecond
	tenantWork = time.Millisecond
)

// Open builds the parts. It succeeds while Postgres and Redis are down: they are asked when they are needed. Close
// the App after everything has stopped.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	metrics := telemetry.NewMetrics()
	channels, err := channels(cfg.Channels, log)
	if err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log}) // it is one for the whole process
	clients, err := openRedis(string(cfg.RedisURL), cfg.Redis.MaxConnections)
	if err != nil {
		return nil, err
	}
	st, err := store.Open(ctx, string(cfg.DatabaseURL), store.Config{
		Observe: metrics.Grouped, Channels: channels.Names(),
		MaxConns: cfg.Database.MaxConnections, ReadConns: cfg.Database.ReadConnections, ReadTimeout: cfg.Database.ReadTimeout,
	})
	if err != nil {
		return nil, errors.Join(err, clients.close())
	}
	_ = st.Identify(ctx) // else it is asked again when the name is needed
	// runner is how a part asks Redis. The metrics call the part by this name.
	runner := func(part string, failed func(error)) redisscript.Config {
		return redisscript.Config{Installation: st.Installation, OnError: failed, Observe: func(calls int) { metrics.Grouped(part, calls) }}
	}
	cache := quota.NewCache(clients.cache, runner("ledger", failed(log, "the quota cache does without Redis; Postgres decides alone", metrics.CacheErrors.Inc)))
	limiterFailed := failed(log, "no decision about speed limits", metrics.LimiterErrors.Inc)
	callers := httpapi.CallerLimits{
		PerKey: cfg.APILimits.PerKey, PerIP: cfg.APILimits.PerIP, TrustedProxies: cfg.APILimits.TrustedProxies, Skipped: metrics.LimitsSkipped.Inc,
		Limiter: ratelimit.New(clients.callers, ratelimit.Config{Config: runner("callers", limiterFailed)}),
	}
	takes := ratelimit.New(clients.takes, ratelimit.Config{Config: runner("limits", limiterFailed), Work: takesWork, OwnerWork: tenantWork})
	q, stopping := queue.New(clients.queue, cfg.Delivery.Queues, st.Installation), new(atomic.Bool)
	checker := health.New(health.Config{
		Postgres: st.Ready, Redis: q.Works, Overdue: st.Overdue, Patience: cfg.Delivery.ArmLease, Stopping: stopping.Load,
	})
	return &App{
		cfg: cfg, log: log, metrics: metrics, channels: channels, redis: clients, store: st, cache: cache,
		takes: takes, callers: callers, queue: q, health: checker, stopping: stopping,
	}, nil
}

// Close closes the connections.
func (a *App) Close() error {
	a.store.Close()
	return a.redis.close()
}

// failed returns a function that counts a failure of Redis, and logs what follows from it.
func failed(log *slog.Logger, message string, count func()) func(error) {
	return func(err error) {
		count()
		log.Warn(message, "error", err)
	}
}

// Handler returns the API as a handler.
func (a *App) Handler() http.Handler {
	service := schedule.New(a.store, a.cache, a.queue, a.log, a.metrics, time.Now, schedule.Config{
		Policy:     a.cfg.Policy,
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

// gauges are those of every program.
func (a *App) gauges() telemetry.Gauges {
	return telemetry.Gauges{Backlog: a.store.Backlog, Webhooks: a.store.WebhookBacklog, QueueSizes: a.queue.Sizes, Postgres: a.store.Ready, Redis: a.queue.Works}
}

// RunAPI serves the API on the configured address until ctx ends, and then for as long as HTTP.Drain says; requests
// under way are answered.
func (a *App) RunAPI(ctx context.Context) error {
	a.metrics.Watch(a.gauges())
	return a.runAPI(ctx, nil)
}

func (a *App) runAPI(ctx context.Context, ready chan<- string) error {
	ctx, cancel := a.drain(ctx)
	defer cancel()
	return a.serve(ctx, "api", config.AddrVariable, a.cfg.Addr, a.Handler(), ready)
}

// RunWorker delivers pushes until ctx ends; attempts under way are carried to their end.
func (a *App) RunWorker(ctx context.Context) error {
	context.AfterFunc(ctx, func() { a.stopping.Store(true) })
	w := a.newWorker()
	if a.cfg.MetricsAddr != "" {
		a.metrics.Watch(w.gauges)
		w.loops = append(w.loops, func(ctx context.Context) error {
			return a.serve(ctx, "worker metrics", config.MetricsAddrVariable, a.cfg.MetricsAddr, a.metricsOnly(), nil)
		})
	}
	a.log.Info("worker started", "concurrency", a.cfg.Delivery.Concurrency)
	return runAll(ctx, w.loops)
}

// RunBoth runs the API and a worker in one process. It tells ready the API's address as soon as that answers.
func (a *App) RunBoth(ctx context.Context, ready chan<- string) error {
	w := a.newWorker()
	a.metrics.Watch(w.gauges)
	return runAll(ctx, append(w.loops, func(ctx context.Context) error { return a.runAPI(ctx, ready) }))
}

// runAll runs loops at the same time until ctx ends, or one of them fails.
func runAll(ctx context.Context, loops []func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range loops {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
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
