package delivery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/suppression"
)

// permit is the right to make one attempt at the channel of a queue. The zero value is no permit.
type permit struct {
	queue *channelQueue
	level push.Level // of the recipient that the queue gave for it
}

// use ends the permit: a push was claimed.
func (p *permit) use(claimed push.Level) {
	if p.queue != nil && claimed != p.level {
		p.queue.correct(p.level, claimed)
	}
	p.release()
}

// release ends the permit, whether an attempt has used it or not.
func (p *permit) release() {
	if p.queue != nil {
		p.queue.count(-1, -1)
		p.queue = nil
	}
}

// claim claims a recipient's due push: for the channel of the permit, or else for any channel that can take a push. It
// returns the other channels. A claimed push occupies its channel's slot.
func (w *Worker) claim(ctx context.Context, d booking.Due, p *permit) (c booking.Claim, without []string, err error) {
	o := booking.ClaimOrder{RecipientKey: d.RecipientKey, Policy: w.cfg.Policy, Lease: w.cfg.Lease}
	var reserved []string
	if p.queue != nil {
		o.Channel = p.queue.channel
	} else {
		reserved, o.Without = w.queues.reserve()
	}
	if c, err = w.store.Claim(ctx, o); err == nil && c.Outcome == booking.Claimed {
		w.queues.count(booking.RouteOf(&c.Push), 1)
	}
	for _, name := range reserved {
		w.queues.count(name, -1)
		w.resume(name)
	}
	return c, o.Without, err
}

// pass makes attempts for a recipient until there is something to wait for, and returns the time to wait. Each uses a
// slot.
func (w *Worker) pass(ctx context.Context, d booking.Due, p *permit) (pause time.Duration, err error) {
	for {
		w.slots <- struct{}{}
		began := time.Now() // before the lease begins
		c, without, err := w.claim(ctx, d, p)
		if err != nil || c.Outcome != booking.Claimed {
			w.freeSlots(1)
		}
		if err != nil {
			return 0, fmt.Errorf("claim: %w", err)
		}
		switch c.Outcome {
		case booking.Nothing:
			w.enqueue(d, without, c.Barred)
			return 0, nil
		case booking.Wait:
			w.enqueue(d, without, c.Barred)
			return c.Wait, nil
		case booking.Again:
		case booking.Claimed:
			w.charge(ctx, &c, p, began)
			p.use(c.Push.Level)
			if more, err := w.attempt(ctx, c, began); err != nil || !more {
				return 0, err
			}
		default:
			w.ended(ctx, d, c)
		}
	}
}

// enqueue puts a recipient without another claimable push into the queues of the channels that were left out. Otherwise
// only the lane's owner would find its due pushes there, and later. barred are those that the claim has found.
func (w *Worker) enqueue(d booking.Due, without []string, barred []booking.Due) {
	for _, d.Channel = range without {
		of := d
		if i := slices.IndexFunc(barred, func(b booking.Due) bool { return b.Channel == d.Channel }); i >= 0 {
			of = barred[i]
		}
		if q := w.queues.byName[d.Channel]; q != nil {
			q.add(of)
		}
	}
	for _, b := range barred {
		w.queues.own.add(b)
	}
}

// attempt sends a claimed push and records the result. It reports whether another push of the recipient waits. It frees
// the slots of the worker and the channel when the provider has answered. So others use them while the attempt is
// recorded, unless very many attempts are being recorded.
//
// Once begun, it finishes even if ctx ends, because a stopping worker drains.
func (w *Worker) attempt(ctx context.Context, c booking.Claim, began time.Time) (more bool, err error) {
	ctx = context.WithoutCancel(ctx)
	f, reason := w.deliver(ctx, c, began)
	w.recording <- struct{}{}
	w.queues.count(booking.RouteOf(&c.Push), -1)
	w.freeSlots(1)
	w.resume(booking.RouteOf(&c.Push))
	more, err = w.record(ctx, c, f, began)
	if <-w.recording; reason != "" && err == nil {
		w.cfg.suppress(ctx, w.log, &c.Push, reason)
	}
	return more, err
}

// suppress stores that nothing is to be sent to the address of a push any more. If that fails, the next push to the address finds out again.
func (c *Config) suppress(ctx context.Context, log *slog.Logger, p *push.Push, reason suppression.Reason) {
	if c.Suppress == nil || p.To == "" {
		return
	}
	e := suppression.Entry{Tenant: p.Tenant, Channel: p.Channel, Address: suppression.Normal(p.To), Reason: reason, Push: p.ID}
	if err := c.Suppress(ctx, e); err != nil {
		log.WarnContext(ctx, "could not suppress the address of a push; the next push to it will", "push", p.ID, "tenant", p.Tenant, "channel", p.Channel, "reason", reason, "error", err)
	}
}

// deliver sends a claimed push, and decides how its attempt ends. reason is why its address is to be suppressed; "": it is not.
func (w *Worker) deliver(ctx context.Context, c booking.Claim, began time.Time) (f booking.Finish, reason suppression.Reason) {
	failpoint.Hit(failpoint.ClaimCommitted)
	result, retry := w.send(ctx, c, began)
	failpoint.Hit(failpoint.SendAnswered)
	left := c.Push.ExpiresAt.Sub(c.StartedAt) - time.Since(began)
	f = booking.Finish{
		Attempt: c.Attempted(), Outcome: result.Outcome,
		ProviderMessageID: result.ProviderMessageID, Error: result.Error, Segments: result.Segments, Handed: handed(result, began),
		Resolution: retry.After(push.Attempt{
			Number: c.Attempt, Outcome: result.Outcome, Final: result.Final, RetryAfter: result.RetryAfter, Error: result.Error,
		}, left, c.Push.ID[:]),
	}
	late := c.StartedAt.Sub(c.Push.SendAt)
	w.metrics.Attempted(labelOf(&c.Push), c.Push.Level.String(), string(result.Outcome), c.Attempt == 1, late)
	if result.Unregistered {
		w.metrics.Unregistered(labelOf(&c.Push))
	}
	w.log.LogAttrs(ctx, slog.LevelInfo, "push attempted", // once a push: typed values cost a third less
		slog.String("push", c.Push.ID.String()), slog.String("request_id", c.Push.RequestID), slog.String("tenant", c.Push.Tenant.String()),
		slog.String("channel", c.Push.Channel), slog.Int("attempt", c.Attempt), slog.String("outcome", string(result.Outcome)),
		slog.String("status", string(f.Resolution.Status)), slog.Int64("late_ms", late.Milliseconds()), slog.String("error", result.Error))
	return f, result.Suppress
}

// record stores the result of an attempt, and reports whether another push of the recipient waits.
func (w *Worker) record(ctx context.Context, c booking.Claim, f booking.Finish, began time.Time) (more bool, err error) {
	if more, err = w.finish(ctx, c, f, began); err != nil {
		return false, err
	}
	failpoint.Hit(failpoint.FinishCommitted)
	switch f.Resolution.Status {
	case push.Failed:
		w.forgetBooking(c.Push)
	case push.Scheduled:
		in := f.Resolution.Delay
		w.waker.Wake(push.RecipientKey(c.Push.Tenant, c.Push.Recipient), c.StartedAt.Add(time.Since(began)+in), in)
	}
	return more, nil
}

// handed returns the time from before the claim until the provider had the push. The attempt began later, so this errs
// on the safe side.
func handed(r channel.Result, began time.Time) time.Duration {
	if r.Handed.IsZero() {
		return 0
	}
	return r.Handed.Sub(began)
}

// send hands the push to its channel, within half of the lease. A worker that was held up for a quarter of the lease
// since before the claim does not send: the attempt must end, and be recorded, before it counts as lost and is repeated
// elsewhere. Nothing that may wait is between these checks and the attempt.
func (w *Worker) send(ctx context.Context, c booking.Claim, began time.Time) (channel.Result, push.Retry) {
	entry, err := w.channelOf(c)
	if err != nil {
		return channel.Result{Outcome: push.Refused, Error: err.Error()}, push.Retry{MaxAttempts: c.Attempt + 1, First: time.Minute, Max: time.Minute}
	}
	ctx, cancel := context.WithTimeout(ctx, w.cfg.Lease/2)
	defer cancel()
	if c.Push.Rendering != nil {
		message, err := w.rerender(ctx, c, began)
		if err != nil {
			return channel.Result{Outcome: push.Refused, Error: "could not render the message: " + err.Error()}, entry.Retry
		}
		c.Push.Message = message
	}
	if w.cfg.Own != nil && time.Since(began) > pauseKnown {
		if entry, err = channelNow(w.cfg.Own, c); err != nil {
			return channel.Result{Outcome: push.Refused, Error: "not sent: " + err.Error()}, push.Retry{MaxAttempts: c.Attempt + 1, First: time.Second, Max: time.Second}
		}
	}
	if time.Since(began) > w.cfg.Lease/4 {
		return channel.Result{Outcome: push.Refused, Error: "not sent: the worker was held up"}, entry.Retry
	}
	if time.Since(began) > pauseKnown {
		if err := w.notPaused(ctx, c.Push); err != nil {
			return channel.Result{Outcome: push.Refused, Error: "not sent: " + err.Error()}, push.Retry{MaxAttempts: c.Attempt + 1, First: time.Second, Max: time.Second}
		}
	}
	result := entry.Channel.Send(ctx, c.Push, c.Attempt)
	switch {
	case result.Stopped:
		result.Suppress = suppression.Stop
	case result.Unregistered:
		result.Suppress = entry.Gone
	}
	w.queues.report(ctx, booking.RouteOf(&c.Push), c.Push.Tenant, result)
	of := c.Push.Channel
	if c.Push.Own {
		of = channelhealth.OwnChannel(of)
	}
	w.outcomes.note(of, c.Push.Tenant, result)
	return result, entry.Retry
}

// pauseKnown is the time for which a claim's knowledge of pauses is used: a pause is in force two seconds after its answer.
// pauseRead bounds the read that renews it.
const (
	pauseKnown = time.Second
	pauseRead  = 500 * time.Millisecond
)

var errPaused = errors.New("sending was paused meanwhile")

// notPaused returns an error if a pause stops a push now, or if Postgres does not say so in time.
func (w *Worker) notPaused(ctx context.Context, p push.Push) error {
	ctx, cancel := context.WithTimeout(ctx, pauseRead)
	defer cancel()
	paused, err := w.store.PausedNow(ctx, p)
	switch {
	case err != nil:
		return fmt.Errorf("the worker was held up, and could not read the pauses: %w", err)
	case paused:
		return errPaused
	}
	return nil
}

// finish records an attempt. It retries until the lease, which began no earlier than the claim, expires: an attempt
// that is not recorded will be repeated.
func (w *Worker) finish(ctx context.Context, c booking.Claim, f booking.Finish, began time.Time) (more bool, err error) {
	lease := c.LeaseUntil.Sub(c.StartedAt)
	pause := lease / 40
	for {
		more, err = w.store.Finish(ctx, f)
		if !errors.Is(err, push.ErrUnavailable) || time.Since(began)+pause > lease {
			break
		}
		time.Sleep(pause)
	}
	if err != nil {
		w.log.ErrorContext(ctx, "could not record attempt; it counts as lost when its lease expires", "push", c.Push.ID, "request_id", c.Push.RequestID, "attempt", c.Attempt, "error", err)
		return false, fmt.Errorf("finish push %s: %w", c.Push.ID, err)
	}
	return more, nil
}

// forgetBooking frees the place of an unsent push in the cache.
func (w *Worker) forgetBooking(p push.Push) {
	w.cache.Release(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, booking.Of(&p))
}
