package telemetry

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sendquota/sendquota/internal/build"
)

// Metrics are the service's Prometheus metrics, in a registry of their own. The zero value is of no use: see
// [NewMetrics].
type Metrics struct {
	registry *prometheus.Registry

	Lost          prometheus.Counter // attempts whose worker did not report before the lease ended
	CacheErrors   prometheus.Counter // failed exchanges of the quota cache with Redis
	PaceErrors    prometheus.Counter // failed exchanges with Redis about the speed of channels
	LimiterErrors prometheus.Counter // failed exchanges with Redis about speed limits
	LimitsSkipped prometheus.Counter // requests that passed the limits of callers without a decision

	submits      *prometheus.CounterVec
	requests     *prometheus.HistogramVec
	attempts     *prometheus.CounterVec
	lateness     *prometheus.HistogramVec
	unregistered *prometheus.CounterVec
	deferrals    prometheus.Counter
	expired      prometheus.Counter
	overdue      prometheus.Counter
	cacheAnswers *prometheus.CounterVec
	groups       *prometheus.HistogramVec
	notified     *prometheus.CounterVec

	// Without a value before the first audit.
	violations    *prometheus.GaugeVec
	lastAudit     *prometheus.GaugeVec
	auditDuration *prometheus.GaugeVec
}

// NewMetrics registers all metrics.
func NewMetrics() *Metrics {
	registry := prometheus.NewRegistry()
	auto := promauto.With(registry)
	m := &Metrics{
		registry: registry,
		submits: auto.NewCounterVec(prometheus.CounterOpts{Name: "sendquota_submits_total",
			Help: "Submitted pushes by outcome (accepted, refused, capped, invalid, unavailable); a refused one counts once for each rule that refused it."}, []string{"outcome", "rule"}),
		requests: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "sendquota_http_request_duration_seconds",
			Help: "Time to answer an API request.", Buckets: prometheus.ExponentialBuckets(0.001, 2, 14)}, []string{"route", "method", "status"}),
		attempts: auto.NewCounterVec(prometheus.CounterOpts{Name: "sendquota_deliveries_total",
			Help: "Delivery attempts by channel and outcome (delivered, refused, unknown)."}, []string{"channel", "outcome"}),
		lateness: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "sendquota_lateness_seconds",
			Help: "How long after its promised time the first attempt of a push began, by service level.", Buckets: []float64{.005, .01, .025, .05, .1, .2, .3, .5, 1, 2, 5, 10, 30, 60, 300, 1800, 7200}}, []string{"level"}),
		unregistered: auto.NewCounterVec(prometheus.CounterOpts{Name: "sendquota_unregistered_addresses_total",
			Help: "Pushes to addresses that the provider reports as unregistered, by channel."}, []string{"channel"}),
		deferrals: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_deferrals_total",
			Help: "Due pushes put off because the recipient's actual sends left no place."}),
		Lost: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_lost_attempts_total",
			Help: "Attempts whose worker did not report before the lease ended."}),
		expired: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_expired_total",
			Help: "Pushes that expired before they could be sent."}),
		overdue: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_overdue_total",
			Help: "Queries of Postgres for pushes that were overdue by more than delivery.arm_lease although Redis works: the queue wakes no worker, or workers are behind."}),
		cacheAnswers: auto.NewCounterVec(prometheus.CounterOpts{Name: "sendquota_cache_answers_total",
			Help: "Answers of the quota cache: cold (not loaded, or Redis away), free, blocked."}, []string{"state"}),
		CacheErrors: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_cache_errors_total",
			Help: "Failed exchanges of the quota cache with Redis."}),
		PaceErrors: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_pace_errors_total",
			Help: "Failed exchanges with Redis about the speed of channels; until the next that succeeds, a worker keeps to a share of its own."}),
		LimiterErrors: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_limiter_errors_total",
			Help: "Failed exchanges of the speed limiter with Redis."}),
		LimitsSkipped: auto.NewCounter(prometheus.CounterOpts{Name: "sendquota_api_limits_skipped_total",
			Help: "Requests that passed the api_limits without a decision, because Redis did not answer."}),
		groups: auto.NewHistogramVec(prometheus.HistogramOpts{Name: "sendquota_group_size",
			Help: "Calls that shared a transaction (book, batch, claim, finish, look) or a pipeline (cache, limits, callers).", Buckets: prometheus.ExponentialBuckets(1, 2, 11)}, []string{"kind"}),
		notified: auto.NewCounterVec(prometheus.CounterOpts{Name: "sendquota_webhook_deliveries_total",
			Help: "Delivery attempts to webhooks by outcome (delivered, failed and to be repeated, given_up)."}, []string{"outcome"}),
		violations: auto.NewGaugeVec(prometheus.GaugeOpts{Name: "sendquota_audit_violations",
			Help: "Broken guarantees that the workers' last audit found, by check."}, []string{"check"}),
		lastAudit: auto.NewGaugeVec(prometheus.GaugeOpts{Name: "sendquota_audit_last_success_timestamp_seconds",
			Help: "When the workers' last audit ended."}, nil),
		auditDuration: auto.NewGaugeVec(prometheus.GaugeOpts{Name: "sendquota_audit_duration_seconds",
			Help: "How long the workers' last audit took, with its pauses."}, nil),
	}
	b := build.Read()
	auto.NewGaugeFunc(prometheus.GaugeOpts{Name: "sendquota_build_info", Help: "Always 1; the labels name the program's version.",
		ConstLabels: prometheus.Labels{"version": b.Version, "revision": b.Revision, "goversion": b.Go}}, func() float64 { return 1 })
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Handler serves the metrics in Prometheus' format.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// Submitted counts a submitted push.
func (m *Metrics) Submitted(outcome, rule string) { m.submits.WithLabelValues(outcome, rule).Inc() }

// Requested records an API request.
func (m *Metrics) Requested(route, method string, status int, seconds float64) {
	m.requests.WithLabelValues(route, method, strconv.Itoa(status)).Observe(seconds)
}

// Attempted counts a delivery attempt, and how late a push's first one began, by its service level.
func (m *Metrics) Attempted(channel, level, outcome string, first bool, late time.Duration) {
	m.attempts.WithLabelValues(channel, outcome).Inc()
	if first {
		m.lateness.WithLabelValues(level).Observe(late.Seconds())
	}
}

// Unregistered counts a push to an address that the provider reports as unregistered.
func (m *Metrics) Unregistered(channel string) { m.unregistered.WithLabelValues(channel).Inc() }

// PutOff counts a due push that was put off.
func (m *Metrics) PutOff() { m.deferrals.Inc() }

// Expired counts pushes that were too late.
func (m *Metrics) Expired(pushes int) { m.expired.Add(float64(pushes)) }

// FoundOverdue counts lanes that a worker queried without a wake-up, because pushes there were overdue although Redis
// works.
func (m *Metrics) FoundOverdue(lanes int) { m.overdue.Add(float64(lanes)) }

// CacheAnswered counts an answer of the cache.
func (m *Metrics) CacheAnswered(state string) { m.cacheAnswers.WithLabelValues(state).Inc() }

// Grouped records how many calls shared a transaction or a pipeline.
func (m *Metrics) Grouped(kind string, size int) {
	m.groups.WithLabelValues(kind).Observe(float64(size))
}

// Notified counts a delivery attempt to a webhook.
func (m *Metrics) Notified(outcome string) { m.notified.WithLabelValues(outcome).Inc() }

// Audited records the violations of the last audit, by check, and when it ended.
func (m *Metrics) Audited(violations map[string]int, took time.Duration, ended time.Time) {
	for check, n := range violations {
		m.violations.WithLabelValues(check).Set(float64(n))
	}
	m.auditDuration.WithLabelValues().Set(took.Seconds())
	m.lastAudit.WithLabelValues().Set(float64(ended.UnixMilli()) / 1000)
}
