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
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

const (
	interval   = 250 * time.Millisecond // how often a worker without work looks for some
	atOnce     = 512                    // requests of one worker
	perWebhook = 8                      // requests to one endpoint, of all workers

	// leastFailures in a row, beside the time, switch an endpoint off: a single event does not decide about one that
	// gets few.
	leastFailures = 10
)

// Config is what a Notifier has to know.
type Config struct {
	Timeout               time.Duration // of one attempt
	AllowPrivateAddresses bool
	DisableAfter          time.Duration   // an endpoint that has failed for so long is switched off
	Backoff               []time.Duration // the pauses between attempts; nil: those of backoff

	Watched func(loop.Loop) loop.Loop // has passes begin when something is due; nil: the notifier looks for itself
}

// outbox is the part of the store that holds the events.
type outbox interface {
	ClaimDeliveries(ctx context.Context, o store.OutboxOrder) (claimed []store.Outgoing, more bool, err error)
	SettleDeliveries(ctx context.Context, settlements []store.Settlement, off store.SwitchOff) ([]push.Webhook, error)
}

// observer is told what happened, for the metrics.
type observer interface {
	// Notified is told how an attempt ended: delivered, failed (and to be repeated) or given_up.
	Notified(outcome string)
}

// Notifier posts events to webhooks. Any number of workers run one each.
type Notifier struct {
	outbox      outbox
	client      *outbound.Client
	log         *slog.Logger
	metrics     observer
	now         func() time.Time
	cfg         Config
	settleGroup *groupcommit.Group[store.Settlement, struct{}]
	wake        chan struct{} // something ended: there may be more to do
	running     atomic.Int64
	attempts    sync.WaitGroup
	loop        loop.Loop
}

// New returns a notifier on top of its parts. now is the clock, usually time.Now.
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
	n.loop = cfg.Watched(loop.Loop{Name: "looking for events", Interval: interval, Log: n.log, Pass: n.pass, Retry: time.Second, Wake: n.wake})
	n.settleGroup = &groupcommit.Group[store.Settlement, struct{}]{Run: n.settleTogether, MaxWeight: 500}
	return n
}

// Run delivers events until ctx ends; attempts under way are carried to their end.
func (n *Notifier) Run(ctx context.Context) error {
	defer n.client.Close()
	defer n.attempts.Wait()
	return n.loop.Run(ctx)
}

// pass begins the attempts that are due, as far as there is room.
func (n *Notifier) pass(ctx context.Context) (more bool, err error) {
	room := (atOnce - int(n.running.Load())) / perWebhook
	if room <= 0 || ctx.Err() != nil {
		return false, nil
	}
	began := time.Now() // before the leases begin; monotonic
	claimed, more, err := n.outbox.ClaimDeliveries(ctx, store.OutboxOrder{Webhooks: room, PerWebhook: perWebhook, Lease: 3 * n.cfg.Timeout})
	for _, d := range claimed {
		n.running.Add(1)
		n.attempts.Go(func() { n.deliver(context.WithoutCancel(ctx), d, began) })
	}
	return more, err
}

// deliver makes one attempt. Where the worker was held up, it ends before its lease does, so that no other begins
// beside it.
func (n *Notifier) deliver(ctx context.Context, d store.Outgoing, began time.Time) {
	ctx, cancel := context.WithDeadline(ctx, began.Add(2*n.cfg.Timeout))
	defer cancel()
	if d.Unsigned != nil {
		n.log.ErrorContext(ctx, "an event could not be signed; it is tried again", "delivery", d.ID, "webhook", d.Webhook, "tenant", d.Tenant, "error", d.Unsigned)
	}
	s := n.attempt(ctx, d)
	_, err := n.settleGroup.Do(s)
	n.running.Add(-1)
	if err != nil {
		n.log.ErrorContext(ctx, "how a delivery to a webhook ended could not be recorded; it is sent again", "delivery", d.ID, "webhook", d.Webhook, "error", err)
	} else {
		n.metrics.Notified(outcome(s))
	}
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func outcome(s store.Settlement) string {
	switch {
	case s.Delivered:
		return "delivered"
	case s.GaveUp:
		return "given_up"
	}
	return "failed"
}

// settleTogether records how attempts ended. It never shows a webhook's URL, which may hold a secret of the tenant's.
func (n *Notifier) settleTogether(ctx context.Context, settlements []store.Settlement) ([]struct{}, error) {
	off, err := n.outbox.SettleDeliveries(ctx, settlements, store.SwitchOff{After: n.cfg.DisableAfter, Failures: leastFailures})
	for _, w := range off {
		n.log.WarnContext(ctx, "webhook switched off", "webhook", w.ID, "tenant", w.Tenant, "reason", w.DisabledReason)
	}
	return make([]struct{}, len(settlements)), err
}
