// Package app wires the parts into programs: the API, the worker, or both in one process.
package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/console"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/httpapi"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/ownchannels"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// App holds the parts that the API and the worker share. Both may run in one App.
type App struct {
	cfg          config.Config
	log          *slog.Logger
	metrics      *telemetry.Metrics
	channels     *channel.Set
	directory    *ownchannels.Directory
	oidc         console.OIDC
	redis        redisClients
	store        *store.Store
	cache        *quota.Cache
	tenantLimits *ratelimit.Limiter
	callerLimits rest.CallerLimits
	queue        *queue.Queue
	lanes        []push.Lane
	waker        *queue.Waker
	health       *health.Checker
	shadows      *schedule.Shadows
	refusals     *schedule.Refusals
	pushes       *schedule.Service
	schedules    *recurring.Service
	campaigns    *campaign.Service
	neighbours   *bulkhead.Neighbours[uuid.UUID]
	computing    *bulkhead.Computing[uuid.UUID]
	stopping     atomic.Bool // the program got a signal to stop
}

// Bounds of Redis' time for concurrent requests for tenants' limits in this process, in total and for each tenant. Tenants
// choose the work of these requests, and all other users of Redis wait no longer than that.
const (
	tenantLimitsWork = 2 * time.Millisecond
	oneTenantWork    = time.Millisecond
)

// Open builds the parts. It succeeds while Postgres and Redis are down, because it needs no answer from them. It fails if the database
// has sealed secrets and the key opens none. Close the App after everything has stopped.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger) (*App, error) {
	metrics := telemetry.NewMetrics()
	a := &App{cfg: cfg, log: log, metrics: metrics, neighbours: &bulkhead.Neighbours[uuid.UUID]{}}
	a.computing = bulkhead.NewComputing(a.neighbours)
	var err error
	if a.channels, err = channels(cfg.Channels, log); err != nil {
		return nil, err
	}
	if a.oidc, err = openOIDC(cfg.Console.OIDC); err != nil {
		return nil, err
	}
	sealer, err := cfg.Sealer()
	if err != nil {
		return nil, err
	}
	redis.SetLogger(redisLog{log}) // the whole process has one
	if a.redis, err = openRedis(cfg.RedisURL, cfg.Redis.MaxConnections); err != nil {
		return nil, err
	}
	if a.store, err = store.Open(ctx, string(cfg.DatabaseURL), store.Config{
		Log: log, Observe: metrics.Grouped, Channels: append(a.channels.Names(), booking.OwnRoute),
		Computing: a.computing, Lanes: cfg.Delivery.Lanes, ExternalPasswords: cfg.Console.ExternalPasswords, Sealer: sealer,
		MaxConns: cfg.Database.MaxConnections, ReadConns: cfg.Database.ReadConnections, ReadTimeout: cfg.Database.ReadTimeout,
	}); err != nil {
		return nil, errors.Join(err, a.redis.close())
	}
	_ = a.store.Identify(ctx) // after an error, it is repeated when the name is needed
	if err := a.checkSeals(ctx); err != nil {
		a.store.Close()
		return nil, errors.Join(err, a.redis.close())
	}
	// runner returns the configuration of a part's calls of Redis. The label is the one of the metrics, which dashboards use.
	runner := func(label string, failed func(error)) redisscript.Config {
		return redisscript.Config{Installation: a.store.Installation, OnError: failed, Observe: func(calls int) { metrics.Grouped(label, calls) }}
	}
	a.cache = quota.NewCache(a.redis.cache, runner("cache", a.redisFailed("quota cache: Redis failed; Postgres decides alone", metrics.CacheErrors.Inc)))
	limiterFailed := a.redisFailed("speed limits: Redis failed; no decision", metrics.LimiterErrors.Inc)
	a.callerLimits = rest.CallerLimits{
		PerKey: cfg.APILimits.PerKey, PerIP: cfg.APILimits.PerIP, TrustedProxies: cfg.APILimits.TrustedProxies, Skipped: metrics.LimitsSkipped.Inc,
		Limiter: ratelimit.New(a.redis.callerLimits, ratelimit.Config{Config: runner("callers", limiterFailed)}),
	}
	a.tenantLimits = ratelimit.New(a.redis.tenantLimits, ratelimit.Config{Config: runner("limits", limiterFailed), Work: tenantLimitsWork, OwnerWork: oneTenantWork})
	a.queue = queue.New(a.redis.queue, cfg.Delivery.Queues, a.store.Installation)
	a.shadows = schedule.NewShadows(a.store, log, time.Now)
	a.refusals = schedule.NewRefusals(a.store, log)
	a.lanes = push.Lanes(cfg.Delivery.Lanes)
	a.waker = queue.NewWaker(a.queue, a.lanes, cfg.Delivery.Horizon, log)
	a.directory = a.openDirectory()
	a.openPushes()
	a.schedules = recurring.New(a.store, a.pushes, time.Now, recurring.Config{MaxPerTenant: a.cfg.Schedules.MaxPerTenant, Kept: a.cfg.Retention.Pushes})
	a.campaigns = campaign.New(a.store, time.Now, campaign.Config{
		MaxPerTenant: a.cfg.Campaigns.MaxPerTenant, MaxAudience: a.cfg.Campaigns.MaxAudience, MaxAudienceBytes: a.cfg.Campaigns.MaxAudienceBytes, TenantBytes: a.cfg.TenantCaps.AudienceBytes,
		Channels: a.channels.Names(), MaxHorizon: a.cfg.Delivery.MaxHorizon, Check: a.channels.Check, TextSize: a.channels.Size, Computing: a.computing, Own: a.directory,
	})
	a.health = health.New(health.Config{
		Postgres: a.postgresWorks, Redis: a.redisWorks, Overdue: a.store.Overdue, MaxDue: cfg.Delivery.ArmLease, Stopping: a.stopping.Load,
	})
	return a, nil
}

// openPushes opens the service of pushes on the store, the cache and the queue.
func (a *App) openPushes() {
	a.pushes = schedule.New(a.store, a.cache, a.waker, a.metrics, time.Now, schedule.Config{
		Policy:     a.cfg.Policy.Terms(),
		Channels:   a.channels.Names(),
		DefaultTTL: a.cfg.Delivery.DefaultTTL,
		MaxHorizon: a.cfg.Delivery.MaxHorizon,
		Horizon:    a.cfg.Delivery.Horizon,
		Caps:       push.Caps{PendingPushes: a.cfg.TenantCaps.PendingPushes, RecipientsPerDay: a.cfg.TenantCaps.RecipientsPerDay},
		Check:      a.channels.Check,
		TextSize:   a.channels.Size,
		Own:        a.directory,
		Shadows:    a.shadows,
		Refusals:   a.refusals,
		Neighbours: a.neighbours,
		Computing:  a.computing,
	})
}

// checkSeals returns an error if the key opens none of the sealed secrets of the database, and logs an error if it opens only some.
func (a *App) checkSeals(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	unopened, is := errors.AsType[*pg.SealsError](a.store.CheckSeals(ctx))
	switch {
	case !is: // the key opens all, or Postgres does not answer
		if err := a.store.NoteSealKey(ctx, false); errors.Is(err, pg.ErrOtherSealKey) {
			return err
		}
		return nil
	case unopened.Opened == 0:
		return unopened
	}
	a.log.Error(unopened.Error())
	return nil
}

// Close arms pushes that are not armed yet, if the queue works, sends pending updates to the cache, and closes the
// connections.
func (a *App) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = a.waker.Flush(ctx) // after an error, the owners of the lanes find the pushes
	_ = a.cache.Flush(ctx) // after an error, the cache is wrong until it expires
	_ = a.shadows.Flush(ctx)
	_ = a.refusals.Flush(ctx)
	a.store.Close()
	return a.redis.close()
}

// redisFailed returns a function that counts a failure of Redis, and logs the consequence.
func (a *App) redisFailed(message string, count func()) func(error) {
	return func(err error) {
		count()
		a.log.Warn(message, "error", err)
	}
}

// postgresWorks returns an error if Postgres does not work for the programs, or has unsuitable settings.
func (a *App) postgresWorks(ctx context.Context) error {
	if err := a.store.Ready(ctx); err != nil {
		return err
	}
	return a.store.CheckServer(ctx)
}

// redisWorks returns an error if Redis does not work for the programs, or has unsuitable settings.
func (a *App) redisWorks(ctx context.Context) error {
	if err := a.queue.Works(ctx); err != nil {
		return err
	}
	return a.queue.CheckServer(ctx)
}

// handler returns the API as a handler.
func (a *App) handler() http.Handler {
	return httpapi.New(a.pushes, a.store, httpapi.Config{
		Audits:      a.auditsOfAPI(),
		Channels:    a.channelsOfAPI(),
		OwnChannels: a.ownChannels(),
		Flows:       a.store,
		Failures:    a.store,
		Health:      a.health,
		Keys:        a.store,
		MaxKeys:     a.cfg.APIKeys.MaxPerTenant,
		Users:       a.store,
		MaxUsers:    a.cfg.Console.MaxUsersPerTenant,
		PublicURL:   a.cfg.ConsoleURL(),

		BesideConsole: a.cfg.Console.Enabled && a.cfg.Console.Addr == "",

		Schedules:   a.schedules,
		Campaigns:   a.campaigns,
		BulkChanges: bulk.New(a.store, a.pushes),
		Pauses:      a.store,
		Simulator:   campaign.NewSimulator(a.store, a.campaigns, a.pushes, campaign.SimulatorConfig{Policy: a.cfg.Policy.Terms(), Caps: push.Caps{PendingPushes: a.cfg.TenantCaps.PendingPushes, RecipientsPerDay: a.cfg.TenantCaps.RecipientsPerDay}, Speed: a.channelSpeed, Behind: a.channelBehind, Parse: campaign.Parse}),
		Webhooks: notify.NewWebhooks(a.store, notify.WebhooksConfig{
			MaxPerTenant: a.cfg.Webhooks.MaxPerTenant, AllowPrivateAddresses: a.cfg.Webhooks.AllowPrivateAddresses,
		}),
		Policies: schedule.NewPolicies(a.store, schedule.PoliciesConfig{
			File: a.cfg.Policy.Document, Terms: a.cfg.Policy.Terms(), Channels: a.channels.Names(), Own: a.directory,
		}),
		Memory:     requestMemory(),
		Log:        a.log,
		Limiter:    a.tenantLimits,
		Callers:    a.callerLimits,
		Stopping:   a.stopping.Load,
		Metrics:    a.metrics.Handler(),
		Observe:    a.metrics.Requested,
		Neighbours: a.neighbours,
		Computing:  a.computing,
	})
}

// gauges returns the gauges of every program.
func (a *App) gauges() telemetry.Gauges {
	return telemetry.Gauges{Backlog: a.store.Backlog, PutOff: a.store.PutOff, Paused: a.pausedPushes, Webhooks: a.store.WebhookBacklog, Campaigns: a.store.CampaignStates, Pauses: a.store.PauseCounts, Rates: a.channelRates, QueueSizes: a.queue.Sizes, Postgres: a.store.Ready, Redis: a.queue.Works, Partitions: a.store.Partitions}
}

// RunAPI serves the API on the configured address until HTTP.Drain after the end of ctx. It finishes requests under way.
func (a *App) RunAPI(ctx context.Context) error {
	a.metrics.Watch(a.gauges())
	return a.runAPI(ctx, nil)
}

func (a *App) runAPI(ctx context.Context, ready chan<- string) error {
	ctx, cancel := a.drain(ctx)
	defer cancel()
	api, pages := a.handlers()
	loops := append(a.common(), func(ctx context.Context) error {
		return a.serve(ctx, "api", config.AddrVariable, a.cfg.Addr, api, ready)
	})
	if pages != nil {
		loops = append(loops, func(ctx context.Context) error {
			return a.serve(ctx, "console", "console.addr", a.cfg.Console.Addr, pages, nil)
		})
	}
	return runAll(ctx, loops)
}

// RunWorker delivers pushes until ctx ends, and finishes attempts under way.
func (a *App) RunWorker(ctx context.Context) error {
	context.AfterFunc(ctx, func() { a.stopping.Store(true) })
	loops, gauges := a.worker()
	loops = append(loops, a.common()...)
	if a.cfg.MetricsAddr != "" {
		a.metrics.Watch(gauges)
		loops = append(loops, func(ctx context.Context) error {
			return a.serve(ctx, "worker metrics", config.MetricsAddrVariable, a.cfg.MetricsAddr, a.metricsOnly(), nil)
		})
	}
	a.log.Info("worker started", "concurrency", a.cfg.Delivery.Concurrency)
	return runAll(ctx, loops)
}

// common returns the loops that an API has as well as a worker. One of each serves both in one process.
func (a *App) common() []func(context.Context) error {
	return []func(context.Context) error{a.shadows.Run, a.refusals.Run, a.directory.Run}
}

// RunBoth runs the API and a worker in one process. It sends the API's address to ready as soon as the API answers.
func (a *App) RunBoth(ctx context.Context, ready chan<- string) error {
	loops, gauges := a.worker()
	a.metrics.Watch(gauges)
	return runAll(ctx, append(loops, func(ctx context.Context) error { return a.runAPI(ctx, ready) }))
}
