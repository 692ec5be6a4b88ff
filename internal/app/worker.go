package app

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/telemetry"
)

// worker is everything that a worker runs, and its gauges.
type worker struct {
	loops  []func(context.Context) error
	gauges telemetry.Gauges
}

// newWorker builds the parts of a worker. runAll starts them.
func (a *App) newWorker() worker {
	d, hooks := a.cfg.Delivery, a.cfg.Webhooks
	pacer := pace.New(a.redis.pace, a.store.Installation, uuid.NewString(),
		failed(a.log, "channels do without Redis: each worker keeps to a share of their speed", a.metrics.PaceErrors.Inc))
	deliverer := delivery.New(a.store, a.cache, a.channels, a.log, a.metrics, delivery.Config{
		Policy: a.cfg.Policy, Lease: d.Lease, Concurrency: d.Concurrency, Pacer: pacer,
	})
	promoter := &schedule.Promoter{Store: a.store, Queue: a.queue, Log: a.log, Horizon: d.Horizon, Lease: d.ArmLease,
		Busy: func() []push.Source { return deliverer.Busy(0) }}
	expirer := &schedule.Expirer{Store: a.store, Cache: a.cache, Log: a.log, Expired: a.metrics.Expired}
	reaper := &schedule.Reaper{
		Store: a.store, Cache: a.cache, Log: a.log, Lost: a.metrics.Lost.Inc,
		Interval: min(time.Second, d.Lease/4), Retry: a.retry,
	}
	poller := &schedule.Poller{
		Store: a.store, Works: a.queue.Works, Handle: deliverer.Handle, Log: a.log,
		Patience: d.RedisPatience, Linger: d.ArmLease, Overdue: d.ArmLease, Found: a.metrics.FoundOverdue, Concurrency: d.Concurrency,
		Busy: func() []push.Source { return deliverer.Busy(5 * d.Concurrency) },
	}
	notifier := notify.New(a.store, a.log, a.metrics, time.Now, notify.Config{
		Timeout: hooks.Timeout, AllowPrivateAddresses: hooks.AllowPrivateAddresses, DisableAfter: hooks.DisableAfter,
	})
	sweeper := &schedule.Sweeper{Store: a.store, Log: a.log, Keep: hooks.Retention}
	serveQueue := func(ctx context.Context) error {
		return a.queue.Serve(ctx, queue.ServerConfig{Concurrency: d.Concurrency, Drain: d.Lease, Log: a.log}, deliverer.Handle)
	}
	loops := []func(context.Context) error{
		promoter.Run, expirer.Run, reaper.Run, poller.Run, deliverer.Run, notifier.Run, sweeper.Run, serveQueue,
	}
	if d.AuditInterval > 0 {
		auditor := &schedule.Auditor{Store: a.store, Log: a.log, Policy: a.cfg.Policy, Interval: d.AuditInterval, Audited: a.metrics.Audited}
		loops = append(loops, auditor.Run)
	}
	gauges := a.gauges()
	gauges.Channels, gauges.Polling = deliverer.Channels, poller.Polling
	return worker{loops, gauges}
}

// retry is how a channel tries again. One that was taken out of the configuration does so by the defaults.
func (a *App) retry(name string) push.Retry {
	if entry, ok := a.channels.Get(name); ok {
		return entry.Retry
	}
	return push.Retry{MaxAttempts: 8, First: 5 * time.Second, Max: 15 * time.Minute}
}
