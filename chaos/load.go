package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
)

// The first parts of recipients' names, by how the load uses them.
const (
	farName  = "far-"  // booked for next year, never sent: their history is checked for linearizability
	liveName = "live-" // sent within seconds
)

func isFar(recipient string) bool { return strings.HasPrefix(recipient, farName) }

// load keeps callers busy until ctx ends, and then waits for their last
// answers.
func (b *bundle) load(ctx context.Context, seed uint64) {
	var wg sync.WaitGroup
	start := func(n int, work func(ctx context.Context, c *caller, rng *rand.Rand, n int)) {
		for i := range n {
			rng := rand.New(rand.NewPCG(seed, uint64(i)))
			wg.Go(func() {
				for c := b.newCaller(); ctx.Err() == nil; {
					work(context.WithoutCancel(ctx), c, rng, i)
					_ = pass(ctx, time.Duration(20+rng.IntN(60))*time.Millisecond)
				}
			})
		}
	}
	start(6, b.liveWork)
	start(12, b.farWork)
	start(1, b.bulkWork)
	if b.teams != nil {
		start(4, b.teams.submit)
		start(1, func(ctx context.Context, _ *caller, rng *rand.Rand, _ int) { b.teams.work(ctx, rng) })
	}
	wg.Wait()
}

// liveWork does one thing with pushes that are due soon. It sleeps for random
// times, so that cancels and moves meet pushes in every state.
func (b *bundle) liveWork(ctx context.Context, c *caller, rng *rand.Rand, n int) {
	soon := func() time.Time {
		return time.Now().Add(time.Duration(1+rng.IntN(6)) * time.Second).Truncate(time.Second)
	}
	recipient := fmt.Sprint(liveName, rng.IntN(300))
	key := fmt.Sprintf("%d-%x", n, rng.Uint64())
	switch choice := rng.IntN(100); {
	case choice < 30:
		c.submit(ctx, recipient, "push", key, soon())
	case choice < 35: // to be sent within two seconds, or not at all
		c.submitBrief(ctx, recipient, "push", key, soon())
	case choice < 50:
		c.submit(ctx, recipient, "push", "", soon())
	case choice < 60:
		c.submit(ctx, recipient, "once", key, soon())
	case choice < 70:
		var wanted []op
		for range 5 {
			wanted = append(wanted, op{Recipient: fmt.Sprint(liveName, rng.IntN(300)), At: soon().UTC()})
		}
		c.batch(ctx, key, choice < 65, wanted)
	case choice < 80: // the same submit on two APIs at once
		at, other := soon(), b.newCaller()
		other.sent = c.sent + 1
		done := make(chan struct{})
		go func() { defer close(done); other.submit(ctx, recipient, "push", key, at) }()
		c.submit(ctx, recipient, "push", key, at)
		<-done
	case choice < 84: // a cancel while it waits to be tried again
		unclear := fmt.Sprintf("%d-%s", []int{3, 4, 7, 8}[rng.IntN(4)], recipient)
		if o := c.submit(ctx, unclear, "push", key, time.Now().Truncate(time.Second)); o.Status == 201 {
			time.Sleep(time.Duration(300+rng.IntN(1500)) * time.Millisecond)
			c.cancel(ctx, o)
		}
	case choice < 92:
		if o := c.submit(ctx, recipient, "push", key, soon()); o.Status == 201 {
			time.Sleep(time.Duration(rng.IntN(3000)) * time.Millisecond) // until it waits, is claimed, or is retried
			c.cancel(ctx, o)
		}
	default:
		if o := c.submit(ctx, recipient, "push", key, soon()); o.Status == 201 {
			time.Sleep(time.Duration(rng.IntN(2000)) * time.Millisecond)
			c.move(ctx, o, soon())
		}
	}
}

// farWork does one thing with one of few times, next year: two callers share a recipient.
func (b *bundle) farWork(ctx context.Context, c *caller, rng *rand.Rand, n int) {
	year := time.Now().AddDate(0, 6, 0).Truncate(24 * time.Hour)
	somewhen := func() time.Time { return year.Add(time.Duration(rng.IntN(20)) * time.Second) }
	recipient, key := fmt.Sprint(farName, n/2, "-", time.Now().Format("1504")), "" // another one every minute: long histories take long to check
	if rng.IntN(2) == 0 {
		key = fmt.Sprintf("far-%d-%x", n, rng.Uint64())
	}
	o := c.submit(ctx, recipient, "push", key, somewhen())
	if o.Status != 201 {
		return
	}
	if rng.IntN(3) == 0 {
		if m := c.move(ctx, o, somewhen()); !m.known() {
			return
		}
	}
	if rng.IntN(5) > 0 {
		c.cancel(ctx, o)
	}
}
