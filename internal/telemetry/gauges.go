package telemetry

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauges are read when the metrics are asked for.
type Gauges struct {
	Backlog    func(context.Context) (pushes int, oldest time.Duration, err error)       // pushes that are due and wait
	QueueSizes func() (map[string]int, error)                                            // wake-ups by state
	Webhooks   func(context.Context) (due int, oldest time.Duration, off int, err error) // events that are due, and webhooks that are switched off
	Postgres   func(context.Context) error
	Redis      func(context.Context) error
	Polling    func() bool // whether Redis is given up for now; nil in the API

	// Of a worker, by channel; nil in the API.
	Waiting func() map[string]int           // who wait for their turn
	Held    func() map[string]time.Duration // for how long the channel is left alone
}

var (
	backlogDesc = prometheus.NewDesc("sendquota_due_pushes", "Pushes that are due and not yet sent.", nil, nil)
	oldestDesc  = prometheus.NewDesc("sendquota_due_oldest_seconds", "For how long the oldest due push has been due.", nil, nil)
	queueDesc   = prometheus.NewDesc("sendquota_queue_tasks", "Wake-ups in asynq by state.", []string{"state"}, nil)
	upDesc      = prometheus.NewDesc("sendquota_up", "Whether a server answers: 1 or 0.", []string{"server"}, nil)
	webhookDesc = prometheus.NewDesc("sendquota_webhook_due_deliveries", "Events that are due to be told to webhooks.", nil, nil)
	awaitedDesc = prometheus.NewDesc("sendquota_webhook_due_oldest_seconds", "For how long the oldest of those has been due.", nil, nil)
	offDesc     = prometheus.NewDesc("sendquota_webhooks_disabled", "Webhooks that are switched off.", nil, nil)
	pollingDesc = prometheus.NewDesc("sendquota_polling", "1 while workers poll Postgres because Redis is away.", nil, nil)
	waitingDesc = prometheus.NewDesc("sendquota_channel_waiting", "Recipients that wait for their turn at a channel, in this worker.", []string{"channel"}, nil)
	heldDesc    = prometheus.NewDesc("sendquota_channel_held_seconds", "For how long this worker still leaves a channel alone, because its provider fails or asked for a pause.", []string{"channel"}, nil)
)

// Watch adds gauges to the metrics. What can not be read is left out, and the
// server that did not answer is shown as down.
func (m *Metrics) Watch(g Gauges) { m.registry.MustRegister(gaugeCollector{g}) }

type gaugeCollector struct{ Gauges }

// Describe names no metric in advance, since what can not be read is left out.
func (gaugeCollector) Describe(chan<- *prometheus.Desc) {}

// Collect reads the gauges, both servers at the same time, each within two
// seconds: one that hangs says nothing about the other.
func (c gaugeCollector) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	var both sync.WaitGroup
	both.Go(func() {
		answers := c.Postgres(ctx)
		gauge(upDesc, up(answers), "postgres")
		if answers != nil {
			return
		}
		if pushes, oldest, err := c.Backlog(ctx); err == nil {
			gauge(backlogDesc, float64(pushes))
			gauge(oldestDesc, oldest.Seconds())
		}
		if due, oldest, off, err := c.Webhooks(ctx); err == nil {
			gauge(webhookDesc, float64(due))
			gauge(awaitedDesc, oldest.Seconds())
			gauge(offDesc, float64(off))
		}
	})
	both.Go(func() {
		answers := c.Redis(ctx)
		gauge(upDesc, up(answers), "redis")
		if answers != nil {
			return
		}
		if sizes, err := c.QueueSizes(); err == nil {
			for state, n := range sizes {
				gauge(queueDesc, float64(n), state)
			}
		}
	})
	both.Wait()
	if c.Polling != nil {
		gauge(pollingDesc, map[bool]float64{true: 1}[c.Polling()])
	}
	if c.Waiting != nil {
		for channel, n := range c.Waiting() {
			gauge(waitingDesc, float64(n), channel)
		}
		for channel, d := range c.Held() {
			gauge(heldDesc, d.Seconds(), channel)
		}
	}
}

func up(err error) float64 {
	if err != nil {
		return 0
	}
	return 1
}
