// Package delivery carries out one attempt after another: it claims a
// recipient's oldest due push, sends it through its channel, and records how
// that ended. What is due and what may be sent is decided by the store, under
// the recipient's lock; see [store.Store.Claim].
package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Deliverer handles wake-ups. It is safe for concurrent use.
type Deliverer struct {
	store    attempts
	cache    *quota.Cache
	channels *channel.Set
	lines    *lines
	log      *slog.Logger
	seen     observer
	cfg      Config
}

// Config is what a Deliverer has to know.
type Config struct {
	Policy      quota.Policy
	Lease       time.Duration // how long an attempt may take before it counts as lost
	Concurrency int           // attempts at the same time
	Pacer       pacer         // nil: this is the only worker, and no channel's speed is limited
}

// attempts is the part of the store that begins and ends attempts.
type attempts interface {
	Claim(ctx context.Context, o booking.ClaimOrder) (booking.Claim, error)
	Finish(ctx context.Context, f booking.Finish) (more bool, err error)
}

// observer is told what happened, for the metrics.
type observer interface {
	// Attempted is told of every attempt that ended, whether it was the
	// push's first, and how long after the promised time it began.
	Attempted(channel, outcome string, first bool, late time.Duration)
	Unregistered(channel string)
	Deferred()
}

// New returns a deliverer on top of its parts.
func New(st attempts, cache *quota.Cache, channels *channel.Set, log *slog.Logger, seen observer, cfg Config) *Deliverer {
	return &Deliverer{
		store: st, cache: cache, channels: channels, lines: newLines(channels, cfg.Pacer, log, cfg.Concurrency), log: log, seen: seen, cfg: cfg,
	}
}

// Handle sends what is due for the recipient of a wake-up, one push after
// another, and waits for what may be sent in less than [booking.Patience], until
// nothing is left to do now. It fails only if Postgres could not be reached, or
// with [push.Early] if there was nothing to do yet.
func (d *Deliverer) Handle(ctx context.Context, w push.WakeUp) error {
	for {
		pause, err := d.pass(ctx, w, &turn{})
		if err != nil || pause == 0 {
			return err
		}
		if err := wait(ctx, pause); err != nil {
			return err
		}
	}
}

// turn is the right to make one attempt at a channel. The zero value is none.
type turn struct {
	line *line
	open bool // it may be used at any channel where nobody has to wait in line
}

// take ends the turn: it is used, or nobody is there to use it.
func (t *turn) take() {
	if t.line != nil {
		t.line.count(-1, -1)
		t.line = nil
	}
}

// order asks for what may be sent now: with a turn out of a line, at its channel;
// otherwise where nobody has to wait in line.
func (d *Deliverer) order(w push.WakeUp, t *turn) booking.ClaimOrder {
	o := booking.ClaimOrder{RecipientKey: w.RecipientKey, Policy: d.cfg.Policy, Lease: d.cfg.Lease}
	if t.line != nil && !t.open {
		o.Channel = t.line.channel
	} else {
		o.Without = d.lines.shut()
	}
	return o
}

// pass is Handle up to where there is something to wait for. Where the recipient
// has to wait in line, it does; if the line is closed for good, somebody else is
// to look.
func (d *Deliverer) pass(ctx context.Context, w push.WakeUp, t *turn) (pause time.Duration, err error) {
	closed := false
	defer func() {
		if closed && err == nil && pause == 0 {
			err = push.Early{In: time.Second}
		}
	}()
	for {
		began := time.Now() // before the lease begins
		c, err := d.store.Claim(ctx, d.order(w, t))
		if err != nil {
			return 0, fmt.Errorf("claim for push %s: %w", w.Push, err)
		}
		for _, name := range c.Left {
			closed = !d.lines.byName[name].join(push.WakeUp{Push: w.Push, Tenant: w.Tenant, RecipientKey: w.RecipientKey, Channel: name, At: c.Now}) || closed
		}
		switch c.Outcome {
		case booking.Nothing:
			if early := w.At.Sub(c.Now); early > booking.Patience {
				return 0, push.Early{In: early}
			}
			return 0, nil
		case booking.Wait:
			return c.Wait, nil
		case booking.Deferred:
			d.seen.Deferred()
			d.log.InfoContext(ctx, "push deferred by its recipient's actual sends", "push", c.Push.ID, "request_id", c.Push.RequestID, "until", c.Push.NextAt)
		case booking.TooLate:
			d.log.InfoContext(ctx, "push expired", "push", c.Push.ID, "request_id", c.Push.RequestID)
			d.release(c.Push)
		case booking.Claimed:
			end := d.lines.begin(c.Push.Channel)
			t.take()
			more, err := d.attempt(ctx, c, began)
			end()
			if err != nil || !more {
				return 0, err
			}
		}
	}
}

// wait sleeps for d, or fails when ctx ends before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// attempt sends a claimed push and records how that ended. It reports whether
// another push of the recipient waits.
//
// Once begun, it is carried to its end even if ctx ends: a stopping worker
// drains, it does not drop.
func (d *Deliverer) attempt(ctx context.Context, c booking.Claim, began time.Time) (more bool, err error) {
	ctx = context.WithoutCancel(ctx)
	failpoint.Hit(failpoint.ClaimCommitted)
	result, retry := d.send(ctx, c, began)
	failpoint.Hit(failpoint.SendAnswered)
	left := c.Push.ExpiresAt.Sub(c.StartedAt) - time.Since(began)
	f := booking.Finish{
		Push: c.Push.ID, Token: c.Token, Attempt: c.Attempt, Outcome: result.Outcome,
		ProviderMessageID: result.ProviderMessageID, Error: result.Error, Handed: handed(result, began),
		Resolution: retry.After(push.Attempt{
			Number: c.Attempt, Outcome: result.Outcome, Final: result.Final, RetryAfter: result.RetryAfter, Error: result.Error,
		}, left, c.Push.ID[:]),
	}
	late := c.StartedAt.Sub(c.Push.SendAt)
	d.seen.Attempted(c.Push.Channel, string(result.Outcome), c.Attempt == 1, late)
	if result.Unregistered {
		d.seen.Unregistered(c.Push.Channel)
	}
	d.log.InfoContext(ctx, "push attempted", "push", c.Push.ID, "request_id", c.Push.RequestID, "tenant", c.Push.Tenant, "channel", c.Push.Channel, "attempt", c.Attempt,
		"outcome", result.Outcome, "status", f.Resolution.Status, "late_ms", late.Milliseconds(), "error", result.Error)
	if more, err = d.finish(ctx, c, f, began); err != nil {
		return false, err
	}
	failpoint.Hit(failpoint.FinishCommitted)
	if f.Resolution.Status == push.Failed {
		d.release(c.Push)
	}
	return more, nil
}

// handed is how long after the claim was asked for the provider had the push.
// The attempt began later than that, so this errs to the safe side.
func handed(r channel.Result, began time.Time) time.Duration {
	if r.Handed.IsZero() {
		return 0
	}
	return r.Handed.Sub(began)
}

// send hands the push to its channel, which has half of the lease. A worker
// that was held up for a quarter of the lease since it asked for the claim does
// not begin any more: the attempt must end, and be recorded, before it counts
// as lost and is repeated elsewhere.
func (d *Deliverer) send(ctx context.Context, c booking.Claim, began time.Time) (channel.Result, push.Retry) {
	entry, known := d.channels.Get(c.Push.Channel)
	if !known { // the store was not told of the channels
		return channel.Result{Outcome: push.Refused, Error: "the channel is not configured"}, push.Retry{MaxAttempts: c.Attempt + 1, First: time.Minute, Max: time.Minute}
	}
	if time.Since(began) > d.cfg.Lease/4 {
		return channel.Result{Outcome: push.Refused, Error: "not sent: the worker was held up"}, entry.Retry
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Lease/2)
	defer cancel()
	result := entry.Channel.Send(ctx, c.Push, c.Attempt)
	d.lines.judge(ctx, c.Push.Channel, result)
	return result, entry.Retry
}

// finish records an attempt, and tries until its lease, which began no earlier than
// the claim, is over: an attempt that is not recorded will be repeated.
func (d *Deliverer) finish(ctx context.Context, c booking.Claim, f booking.Finish, began time.Time) (more bool, err error) {
	lease := c.LeaseUntil.Sub(c.StartedAt)
	pause := lease / 40
	for {
		more, err = d.store.Finish(ctx, f)
		if !errors.Is(err, push.ErrUnavailable) || time.Since(began)+pause > lease {
			break
		}
		_ = wait(ctx, pause)
	}
	if err != nil {
		d.log.ErrorContext(ctx, "attempt not recorded; it counts as lost when its lease ends", "push", c.Push.ID, "request_id", c.Push.RequestID, "attempt", c.Attempt, "error", err)
		return false, fmt.Errorf("finish push %s: %w", c.Push.ID, err)
	}
	return more, nil
}

// release gives the place of a push that has ended back to the cache.
func (d *Deliverer) release(p push.Push) {
	d.cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, p.ID)
}
