package delivery

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/liquid"
	"github.com/sendquota/sendquota/internal/push"
)

// unusedTextTime is the unusedTime of a channel whose speed counts segments: little more than a claim takes.
const unusedTextTime = 10 * time.Millisecond

// mostUnused returns the maximum number of unused permits. If texts take several time slots, the next ones are taken when
// the segments of the last text are known, as far as the channel's speed allows that.
func (q *channelQueue) mostUnused() int {
	if q.speed.Most > 0 {
		return max(int(unusedTextTime/q.speed.Every), 1)
	}
	return max(int(unusedTime/q.speed.Every), q.speed.Burst, 1)
}

// textSlots are the time slots of texts, for a channel whose speed counts segments. A worker takes slots before it knows which
// text it will send, for as many segments as the last one had. If they are too few, it takes the others when the text is
// known; if they are too many, it takes fewer for the next one.
type textSlots struct {
	last int       // segments of the last text
	paid int       // slots that were taken for texts that are not known yet, and more
	at   time.Time // of the last text
}

// eachText returns how many time slots to take for the next text. The caller has the lock.
func (q *channelQueue) eachText() int {
	if q.speed.Most == 0 {
		return 1
	}
	if time.Since(q.texts.at) > time.Duration(q.speed.Most)*q.speed.Every {
		q.texts.paid = 0 // slots that were not used are gone
	}
	return max(1, min(q.texts.last, q.speed.Most)-q.texts.paid)
}

// charge takes the time slots of a text's further segments, if the channel's speed counts segments. The queue gives no other
// permit until this one is used, so that its next slot comes after these.
func (w *Worker) charge(ctx context.Context, c *booking.Claim, p *permit, began time.Time) {
	q := p.queue
	if q == nil {
		return
	}
	s := q.pace()
	if s.Most == 0 {
		return
	}
	if c.Push.Rendering != nil {
		if message, err := w.rerender(ctx, *c, began); err == nil { // otherwise the attempt fails with this error
			c.Push.Message, c.Push.Rendering = message, nil
		}
	}
	e, _ := w.channelOf(*c) // without it, the attempt fails
	size, _ := e.Size(c.Push.Message)
	if more := q.charge(c.Push.Level, max(size.Segments, 1)); more > 0 {
		w.queues.pacer.Charge(context.WithoutCancel(ctx), q.channel, s, more)
	}
}

// charge counts a text, and returns how many time slots it needs beside those that were taken.
func (q *channelQueue) charge(l push.Level, segments int) (more int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.serve(l, segments-1) // besides its permit
	left := q.texts.paid - segments
	q.texts = textSlots{last: segments, paid: max(left, 0), at: time.Now()}
	return max(-left, 0)
}

// rerender renders a message that contains the time of its sending.
func (w *Worker) rerender(ctx context.Context, c booking.Claim, began time.Time) (message json.RawMessage, err error) {
	err = w.cfg.Computing.Do(ctx, c.Push.Tenant, func() (err error) {
		message, err = liquid.Again(c.Push.Rendering, c.StartedAt.Add(time.Since(began)))
		return err
	})
	return message, err
}
