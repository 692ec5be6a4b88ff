package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are read at each scrape. Results from servers are cached for some seconds.
type Gauges struct {
	Backlog    func(context.Context) (pushes int, oldest time.Duration, err error)       // pushes that are due and wait
	PutOff     func(context.Context) (pushes int, err error)                             // pushes that a rule has put off
	Paused     func(context.Context) (map[string]int, error)                             // due pushes that a pause holds, by channel
	QueueSizes func() (map[string]int, error)                                            // wake-ups by state
	Webhooks   func(context.Context) (due int, oldest time.Duration, off int, err error) // events that are due, and webhooks that are switched off
	Campaigns  func(context.Context) (map[string]int, error)                             // that go on, by state
	Pauses     func(context.Context) (map[string]int, error)                             // that are in force, by scope
	// Rates calls each for every channel with attempts in the last five minutes, of all workers and tenants: how many there
	// were, how many were refused permanently, and for how many tenants the channel is rejecting.
	Rates func(ctx context.Context, each func(channel string, attempts, rejected, tenants int)) error

	Postgres func(context.Context) error
	Redis    func(context.Context) error
	Polling  func() bool // whether Redis counts as down; nil in the API

	// Partitions calls each for every partitioned table, with the beginning of the first partition and the end of the
	// last one that follows the current one without a gap.
	Partitions func(each func(table string, begin, end time.Time))

	// Channels calls each for every channel of a worker, with the number of recipients in its queue, how much longer it
	// pauses, and how many tenants are held; nil in the API.
	Channels func(each func(channel string, waiting int, held time.Duration, tenants int))
}

var (
	backlogDesc     = prometheus.NewDesc("sendquota_due_pushes", "Pushes that are due and not yet sent; at most 100000 are counted.", nil, nil)
	oldestDesc      = prometheus.NewDesc("sendquota_due_oldest_seconds", "For how long the oldest due push has been due.", nil, nil)
	putOffDesc      = prometheus.NewDesc("sendquota_put_off_pushes", "Pushes whose send time has come, and that a rule has put off; at most 100000 are counted.", nil, nil)
	pausedDesc      = prometheus.NewDesc("sendquota_paused_pushes", "Due pushes that a pause of sending holds, by channel; at most 100000 are counted.", []string{"channel"}, nil)
	queueDesc       = prometheus.NewDesc("sendquota_queue_tasks", "Wake-ups in asynq by state.", []string{"state"}, nil)
	upDesc          = prometheus.NewDesc("sendquota_up", "Whether a server answers: 1 or 0.", []string{"server"}, nil)
	webhookDesc     = prometheus.NewDesc("sendquota_webhook_due_deliveries", "Due events for webhooks.", nil, nil)
	awaitedDesc     = prometheus.NewDesc("sendquota_webhook_due_oldest_seconds", "For how long the oldest due event for a webhook has been due.", nil, nil)
	campaignDesc    = prometheus.NewDesc("sendquota_campaigns", "Campaigns that have not ended, by state.", []string{"state"}, nil)
	pauseDesc       = prometheus.NewDesc("sendquota_pauses", "Pauses that are in force, by scope.", []string{"scope"}, nil)
	offDesc         = prometheus.NewDesc("sendquota_webhooks_disabled", "Webhooks that are switched off.", nil, nil)
	pollingDesc     = prometheus.NewDesc("sendquota_polling", "1 while workers poll Postgres because Redis is away.", nil, nil)
	partsDesc       = prometheus.NewDesc("sendquota_partitions_oldest_seconds", "How long ago the oldest partition of a table began.", []string{"table"}, nil)
	aheadDesc       = prometheus.NewDesc("sendquota_partitions_ahead_seconds", "How far ahead of now the partitions of a table reach.", []string{"table"}, nil)
	waitingDesc     = prometheus.NewDesc("sendquota_channel_waiting", "Recipients in the queue of a channel, in this worker.", []string{"channel"}, nil)
	heldDesc        = prometheus.NewDesc("sendquota_channel_held_seconds", "How much longer this worker pauses a channel because its provider fails or asked for a pause.", []string{"channel"}, nil)
	rejectedDesc    = prometheus.NewDesc("sendquota_channel_rejected_ratio", "Share of all attempts of the last five minutes that were refused permanently, not because of one address alone.", []string{"channel"}, nil)
	rejectingDesc   = prometheus.NewDesc("sendquota_channel_rejecting_tenants", "Tenants with more than a fifth of at least twenty attempts of the last five minutes refused permanently.", []string{"channel"}, nil)
	heldTenantsDesc = prometheus.NewDesc("sendquota_channel_held_tenants", "Tenants whose pushes through a channel this worker pauses or tries carefully, because their attempts fail or the provider asked for a pause.", []string{"channel"}, nil)
)

// Watch adds gauges to the metrics. It skips gauges that cannot be read, and
// shows a server that does not answer as down.
func (m *Metrics) Watch(g Gauges) { m.registry.MustRegister(&gaugeCollector{Gauges: g, now: time.Now}) }

// gaugesKept bounds the age of cached results, so that frequent scrapes do not reach the servers.
const gaugesKept = 5 * time.Second

type gaugeCollector struct {
	Gauges
	now func() time.Time

	mu    sync.Mutex
	kept  []prometheus.Metric // of the servers
	until time.Time
}

// Describe names no metric in advance, since what cannot be read is left out.
func (*gaugeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the gauges. It reads those that need a server once in a while.
func (c *gaugeCollector) Collect(out chan<- prometheus.Metric) {
	for _, m := range c.servers() {
		out <- m
	}
	if c.Polling != nil {
		out <- gauge(pollingDesc, map[bool]float64{true: 1}[c.Polling()])
	}
	if c.Partitions != nil {
		c.Partitions(func(table string, begin, end time.Time) {
			out <- gauge(partsDesc, c.now().Sub(begin).Seconds(), table)
			out <- gauge(aheadDesc, end.Sub(c.now()).Seconds(), table)
		})
	}
	if c.Channels != nil {
		c.Channels(func(channel string, waiting int, held time.Duration, tenants int) {
			out <- gauge(waitingDesc, float64(waiting), channel)
			out <- gauge(heldDesc, held.Seconds(), channel)
			out <- gauge(heldTenantsDesc, float64(tenants), channel)
		})
	}
}

func gauge(d *prometheus.Desc, v float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// servers asks the servers, or returns their answers of a moment ago.
func (c *gaugeCollector) servers() []prometheus.Metric {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.now().Before(c.until) {
		c.kept = c.ask()
		c.until = c.now().Add(gaugesKept)
	}
	return c.kept
}

// ask asks both servers at the same time, each within two seconds: one that hangs does not hold up the other.
func (c *gaugeCollector) ask() []prometheus.Metric {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var (
		both  sync.WaitGroup
		redis []prometheus.Metric
	)
	both.Go(func() { redis = c.redis(ctx) })
	postgres := c.postgres(ctx)
	both.Wait()
	return append(postgres, redis...)
}

func (c *gaugeCollector) postgres(ctx context.Context) []prometheus.Metric {
	answers := c.Postgres(ctx)
	all := []prometheus.Metric{gauge(upDesc, up(answers), "postgres")}
	if answers != nil {
		return all
	}
	if pushes, oldest, err := c.Backlog(ctx); err == nil {
		all = append(all, gauge(backlogDesc, float64(pushes)), gauge(oldestDesc, oldest.Seconds()))
	}
	if pushes, err := c.PutOff(ctx); err == nil {
		all = append(all, gauge(putOffDesc, float64(pushes)))
	}
	if c.Paused != nil {
		channels, _ := c.Paused(ctx) // without them, they are left out
		for channel, n := range channels {
			all = append(all, gauge(pausedDesc, float64(n), channel))
		}
	}
	if due, oldest, off, err := c.Webhooks(ctx); err == nil {
		all = append(all, gauge(webhookDesc, float64(due)), gauge(awaitedDesc, oldest.Seconds()), gauge(offDesc, float64(off)))
	}
	if c.Campaigns != nil {
		states, _ := c.Campaigns(ctx) // the same
		for state, n := range states {
			all = append(all, gauge(campaignDesc, float64(n), state))
		}
	}
	if c.Pauses != nil {
		scopes, _ := c.Pauses(ctx) // the same
		for scope, n := range scopes {
			all = append(all, gauge(pauseDesc, float64(n), scope))
		}
	}
	if c.Rates != nil {
		_ = c.Rates(ctx, func(channel string, attempts, rejected, tenants int) { // the same
			all = append(all, gauge(rejectedDesc, float64(rejected)/float64(max(attempts, 1)), channel), gauge(rejectingDesc, float64(tenants), channel))
		})
	}
	return all
}

func (c *gaugeCollector) redis(ctx context.Context) []prometheus.Metric {
	answers := c.Redis(ctx)
	all := []prometheus.Metric{gauge(upDesc, up(answers), "redis")}
	if answers != nil {
		return all
	}
	sizes, _ := c.QueueSizes() // without them, they are left out
	for state, n := range sizes {
		all = append(all, gauge(queueDesc, float64(n), state))
	}
	return all
}

func up(err error) float64 {
	if err != nil {
		return 0
	}
	return 1
}
