package schedule

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// Poller delivers without a queue: when Redis has not answered for a while, it
// asks Postgres what is due and has it handled in the same way as a wake-up.
type Poller struct {
	Store       *store.Store
	Ping        func(context.Context) error // asks Redis
	Handle      func(context.Context, push.WakeUp) error
	Log         *slog.Logger
	Patience    time.Duration // how long Redis may be away before polling begins
	Concurrency int

	away    time.Time // since when Redis does not answer; zero: it does
	polling atomic.Bool
}

// Run polls until ctx ends.
func (p *Poller) Run(ctx context.Context) error {
	return every(ctx, 500*time.Millisecond, p.Log, "poll", p.Pass)
}

// Polling reports whether Redis is given up for now.
func (p *Poller) Polling() bool { return p.polling.Load() }

// Pass looks whether Redis answers and, if it has not for too long, handles
// one portion of what is due.
func (p *Poller) Pass(ctx context.Context) (full bool, err error) {
	if !p.givenUp(ctx) {
		return false, nil
	}
	due, err := p.Store.Due(ctx, 10*p.Concurrency)
	if err != nil {
		return false, err
	}
	distinct := map[int64]push.WakeUp{}
	for _, w := range due {
		distinct[w.RecipientKey] = w
	}
	limit := make(chan struct{}, p.Concurrency)
	var wg sync.WaitGroup
	for _, w := range distinct {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if err := p.Handle(ctx, w); err != nil && ctx.Err() == nil {
				p.Log.WarnContext(ctx, "polled push not handled", "push", w.Push, "error", err)
			}
		})
	}
	wg.Wait()
	return len(due) == 10*p.Concurrency, nil
}

func (p *Poller) givenUp(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	switch err := p.Ping(ctx); {
	case err == nil:
		if p.polling.Swap(false) {
			p.Log.InfoContext(ctx, "Redis is back; polling ends")
		}
		p.away = time.Time{}
		return false
	case p.away.IsZero():
		p.away = time.Now()
	}
	if time.Since(p.away) < p.Patience {
		return false
	}
	if !p.polling.Swap(true) {
		p.Log.WarnContext(ctx, "Redis does not answer; polling Postgres for what is due", "for", time.Since(p.away))
	}
	return true
}
