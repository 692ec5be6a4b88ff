package notify

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/store/webhooks"
	"github.com/sendquota/sendquota/internal/webhook"
)

const (
	interval   = 250 * time.Millisecond // time between two polls of an idle worker
	atOnce     = 512                    // concurrent requests of one worker
	perWebhook = 8                      // concurrent requests to one endpoint, of all workers

	// leastFailures consecutive failures, in addition to the time, disable an endpoint: a single event must not disable
	// one that gets few.
	leastFailures = 10
)

// Config configures a Notifier.
type Config struct {
	Timeout               time.Duration // of one attempt
	AllowPrivateAddresses bool
	DisableAfter          time.Duration   // an endpoint that fails for this long is disabled
	Backoff               []time.Duration // the pauses between attempts; nil: the default of backoff

	Watched func(loop.Loop) loop.Loop // returns a loop that also runs when an event becomes due; nil: the loop only polls
}

// outbox is the part of the store that holds the events.
type outbox interface {
	ClaimDeliveries(ctx context.Context, o webhooks.ClaimLimits) (claimed []webhooks.Outgoing, more bool, err error)
	SettleDeliveries(ctx context.Context, settlements []webhooks.Settlement, off webhooks.DisableLimits) ([]webhook.Webhook, error)
}

// observer counts metrics.
type observer interface {
	// Notified counts the outcome of an attempt: delivered, failed (to be retried) or given_up.
	Notified(outcome string)
}

// Notifier posts events to webhooks. Every worker runs one.
type Notifier struct {
	outbox      outbox
	client      *outbound.Client
	log         *slog.Logger
	metrics     observer
	now         func() time.Time
	cfg         Config
	settleGroup *groupcommit.Group[webhooks.Settlement, struct{}]
	wake        chan struct{} // an attempt ended: there may be more to do
	running     atomic.Int64
	attempts    sync.WaitGroup
	loop        loop.Loop
}

// New returns a notifier. now is the clock, usually time.Now.
func New(box outbox, log *slog.Logger, metrics observer, now func() time.Time, cfg Config) *Notifier {
	if cfg.Backoff == nil {
		cfg.Backoff = backoff()
	}
	if cfg.Watched == nil {
		cfg.Watched = func(l loop.Loop) loop.Loop { return l }
	}
	n := &Notifier{
		outbox: box, log: log, metrics: metrics, now: now, cfg: cfg, wake: make(chan struct{}, 1),
		client: outbound.New(outbound.Config{Timeout: cfg.Timeout, AllowPrivateAddresses: cfg.AllowPrivateAddresses}),
	}
	n.loop = cfg.Watched(loop.Loop{Name: "send webhook events", Interval: interval, Log: n.log, Pass: n.pass, Retry: time.Second, Wake: n.wake})
	n.settleGroup = &groupcommit.Group[webhooks.Settlement, struct{}]{Run: n.settleTogether, MaxWeight: 500}
	return n
}

// Run delivers events until ctx ends, and then waits for the attempts in progress.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.client.Close()
	defer n.attempts.Wait()
	return n.loop.Run(ctx)
}

// pass starts due attempts, up to the free room.
func (n *Notifier) pass(ctx context.Context) (more bool, err error) {
	room := (atOnce - int(n.running.Load())) / perWebhook
	if room <= 0 || ctx.Err() != nil {
		return false, nil
	}
	began := time.Now() // before the leases begin; monotonic
	claimed, more, err := n.outbox.ClaimDeliveries(ctx, webhooks.ClaimLimits{Webhooks: room, PerWebhook: perWebhook, Lease: 3 * n.cfg.Timeout})
	for _, d := range claimed {
		n.running.Add(1)
		n.attempts.Go(func() { n.deliver(context.WithoutCancel(ctx), d, began) })
	}
	return more, err
}

// deliver makes one attempt. Its deadline is before the end of its lease, even if the worker was held up, so that no
// other attempt overlaps it.
func (n *Notifier) deliver(ctx context.Context, d webhooks.Outgoing, began time.Time) {
	ctx, cancel := context.WithDeadline(ctx, began.Add(2*n.cfg.Timeout))
	defer cancel()
	if d.Unsigned != nil {
		n.log.ErrorContext(ctx, "could not sign webhook event; will retry", "delivery", d.ID, "webhook", d.Webhook, "tenant", d.Tenant, "error", d.Unsigned)
	}
	s := n.attempt(ctx, d)
	_, err := n.settleGroup.Do(s)
	n.running.Add(-1)
	if err != nil {
		n.log.ErrorContext(ctx, "could not record webhook result; will resend", "delivery", d.ID, "webhook", d.Webhook, "error", err)
	} else {
		n.metrics.Notified(outcome(s))
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func outcome(s webhooks.Settlement) string {
	switch {
	case s.Delivered:
		return "delivered"
	case s.GaveUp:
		return "given_up"
	}
	return "failed"
}

// settleTogether records the results of attempts. It never logs a webhook's URL, which may hold a secret of the
// tenant's.
func (n *Notifier) settleTogether(ctx context.Context, settlements []webhooks.Settlement) ([]struct{}, error) {
	off, err := n.outbox.SettleDeliveries(ctx, settlements, webhooks.DisableLimits{After: n.cfg.DisableAfter, Failures: leastFailures})
	for _, w := range off {
		n.log.WarnContext(ctx, "webhook disabled", "webhook", w.ID, "tenant", w.Tenant, "reason", w.DisabledReason)
	}
	return make([]struct{}, len(settlements)), err
}
