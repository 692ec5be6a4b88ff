package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/notify"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/queue"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/suppression"
	"github.com/sendquota/sendquota/internal/telemetry"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// wakeUpHandlers is the minimum number of handlers of wake-ups in a worker; there are at least two for each lane. One at a
// time works on a lane, as long as pushes are due there.
const wakeUpHandlers = 16

// The intervals of a worker's queries for work, normally and after a while without work. Due pushes do not wait for these queries: the
// queue wakes workers.
const (
	pollInterval     = 250 * time.Millisecond
	idlePollInterval = time.Second
)

// worker builds the loops and gauges of a worker. runAll starts the loops.
func (a *App) worker() (loops []func(context.Context) error, gauges telemetry.Gauges) {
	d, hooks := a.cfg.Delivery, a.cfg.Webhooks
	id := uuid.New()
	pacer := pace.New(a.redis.pace, a.store.Installation, id.String(),
		a.redisFailed("channel speed: Redis failed; each worker keeps to a share", a.metrics.PaceErrors.Inc))
	owner := upkeep.NewOwner(a.store, a.lanes, a.log)
	agenda := &loop.Agenda[store.Work]{Interval: min(pollInterval, d.Lease/4), Idle: min(idlePollInterval, d.Lease/4), Log: a.log, Poll: func(ctx context.Context) ([]store.Work, error) {
		return a.store.Agenda(ctx, owner.Lanes())
	}}
	parker := upkeep.NewParker(a.store, a.log)
	deliverer := delivery.New(a.store, a.cache, a.channels, a.waker, a.log, a.metrics, delivery.Config{
		Policy: a.cfg.Policy.Terms(), Lease: d.Lease, Concurrency: d.Concurrency, Pacer: pacer, Lanes: owner.Lanes, Computing: a.computing, Own: a.directory,
		Due: func() bool { return agenda.HasWork(store.PushesDue) }, Parked: parker.Ask,
		Suppress: func(ctx context.Context, e suppression.Entry) error {
			_, _, err := a.pushes.Suppress(ctx, e.Tenant, []suppression.Entry{e}, false)
			return err
		},
	})
	promoter := upkeep.NewPromoter(a.store, a.queue, owner, deliverer, a.log, a.metrics.FoundOverdue, upkeep.PromoterConfig{Horizon: d.Horizon, ArmLease: d.ArmLease})
	expirer := upkeep.NewExpirer(a.store, owner, a.cache, a.log, a.metrics.Expired)
	reaper := upkeep.NewReaper(a.store, owner, a.cache, a.waker, a.log, a.retry, a.metrics.Lost.Inc, min(time.Second, d.Lease/4))
	poller := upkeep.NewPoller(owner, a.queue.Works, deliverer, a.log, time.Now, upkeep.PollerConfig{Patience: d.RedisPatience, ArmLease: d.ArmLease})
	notifier := notify.New(a.store, a.log, a.metrics, time.Now, notify.Config{
		Timeout: hooks.Timeout, AllowPrivateAddresses: hooks.AllowPrivateAddresses, DisableAfter: hooks.DisableAfter,
		Watched: func(l loop.Loop) loop.Loop { return agenda.Add(store.SendEvents, l) },
	})
	audits := upkeep.AuditorConfig{Policy: a.cfg.Policy.Terms(), Interval: d.AuditInterval}
	audits.Kept.Pushes, audits.Kept.Sends, audits.Kept.Log = a.cfg.Retention.Pushes, a.cfg.Retention.Sends, a.cfg.Retention.Log
	runner := recurring.NewRunner(a.store, a.pushes, a.campaigns, a.log, a.cfg.Retention.Pushes)
	campaigns := campaign.NewRunner(a.store, a.pushes, a.log, campaign.RunnerConfig{Policy: a.cfg.Policy.Terms(), Computing: a.computing, Parse: campaign.Parse})
	keeper := upkeep.NewKeeper(a.store, a.log, audits.Kept)
	refitter := upkeep.NewRefitter(a.store, a.cache, a.pushes, a.log, upkeep.RefitterConfig{Policy: a.cfg.Policy.Terms(), MaxHorizon: d.MaxHorizon})
	serveQueue := func(ctx context.Context) error {
		return a.queue.Serve(ctx, queue.ServerConfig{
			Concurrency: max(wakeUpHandlers, 2*len(a.lanes)), Drain: d.Lease, Workers: owner.Workers, Log: a.log,
		}, func(ctx context.Context, wake push.WakeUp) error {
			agenda.Expect() // events, and the ends of campaigns
			return deliverer.Handle(ctx, wake)
		})
	}
	loops = []func(context.Context) error{
		owner.Run, agenda.Run, promoter.Run, poller.Run, deliverer.Run, delivery.NewReporter(deliverer, a.store, id, a.log).Run, notifier.Run, keeper.Run, serveQueue,
		agenda.Add(store.PushesDue, expirer).Run, agenda.Add(store.AttemptsLost, reaper).Run, agenda.Add(store.RunOperations, refitter).Run,
		agenda.Add(store.RunSchedules, runner).Run, agenda.Add(store.RunCampaigns, campaigns).Run, agenda.Add(store.RunBulkChanges, bulk.NewRunner(a.store, a.pushes, a.log)).Run,
		parker.Run, agenda.Add(store.ResumePaused, upkeep.NewResumer(a.store, a.cache, a.waker, a.log, a.metrics.Expired)).Run, agenda.Add(store.FoldStats, upkeep.NewFolder(a.store, a.log)).Run, upkeep.NewRecounter(a.store, a.log).Run,
	}
	for _, r := range a.retention() {
		loops = append(loops, upkeep.NewSweeper(r, a.log).Run)
	}
	if d.AuditInterval > 0 {
		auditor := upkeep.NewAuditor(a.store, a.log, a.metrics.Audited, time.Now, audits)
		loops = append(loops, auditor.Run)
	}
	gauges = a.gauges()
	gauges.Channels, gauges.Polling = deliverer.Channels, poller.Polling
	return loops, gauges
}

// retry returns the retry settings of a push's channel, or the defaults if the channel cannot be opened.
func (a *App) retry(p *push.Push) push.Retry {
	if e, known := a.channels.Get(p.Channel); known && !p.Own {
		return e.Retry
	}
	if e, _ := a.directory.Opened(p.Tenant, p.Channel); e.Channel != nil && p.Own {
		return e.Retry
	}
	return push.Retry{MaxAttempts: 8, First: 5 * time.Second, Max: 15 * time.Minute}
}

// metricsOnly returns the handler of a worker: its metrics, its profiles, /healthz and /readyz.
func (a *App) metricsOnly() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", a.metrics.Handler())
	profiles(mux)
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

// runAll runs loops at the same time until ctx ends, or one of them fails.
func runAll(ctx context.Context, loops []func(context.Context) error) error {
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range loops {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}
