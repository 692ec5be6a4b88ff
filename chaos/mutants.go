package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/wire"
)

// mutant is a story in which one gate alone, or one that does the other's work, stands
// between a recipient and too many pushes, or none. With the gates switched off it must
// end badly, and be noticed; with the gates on it must end well.
type mutant struct {
	gates    string
	story    func(ctx context.Context, w *world) error
	evidence []string // of which the judge must find each
}

var allMutants = []mutant{
	{string(failpoint.Judge), flushedCache, []string{"I2 promised", "promised-window"}},
	{string(failpoint.Delivery), heldUpWorker, []string{"I2 actual", "actual-window"}},
	{string(failpoint.InFlight), slowProvider, []string{"overlap"}},
	{string(failpoint.Confirm), deafRedis, []string{"no order"}},
	{string(failpoint.Rearm + "," + failpoint.Poll), flushedQueue, []string{"still scheduled"}},
	{string(failpoint.Poll), frozenRedis, []string{"still scheduled"}},
}

// mutants tells every story twice.
func mutants(ctx context.Context, l *lab) error {
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, m := range allMutants {
		for _, off := range []bool{false, true} {
			wg.Go(func() {
				err := l.tell(ctx, m, off)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *lab) tell(ctx context.Context, m mutant, off bool) (err error) {
	gates := strings.ReplaceAll(m.gates, ",", "-")
	name, env := "whole-"+gates, []string(nil)
	if off {
		name, env = "without-"+gates, []string{"FAILPOINT_OFF=" + m.gates}
	}
	w, toRedis, err := l.wiredWorld(ctx, name, env...)
	if err != nil {
		return err
	}
	defer toRedis.Close()
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := m.story(ctx, w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := w.settle(ctx, time.Now().Add(time.Minute), 12*time.Second); err != nil {
		return err
	}
	j, err := w.judge(ctx)
	if err != nil {
		return err
	}
	if _, result := linearizable(j.facts.ops, w.rules, isFar); result != porcupine.Ok {
		j.broken("I5", "what callers were told could have happened in no order (%s)", result)
	}
	if !off {
		l.report.judged(w.name, j)
		return nil
	}
	found := strings.Join(j.found, "\n")
	for _, e := range m.evidence {
		if !strings.Contains(found, e) {
			l.report.violate("the mutant without the gate %s survives: the judge did not find %q", m.gates, e)
		}
	}
	l.report.sometimes("mutant caught: no gate "+m.gates, 1)
	return nil
}

// flushedCache books a minute for everybody, has Redis forget it, and asks for
// the same minute again: the cache alone would give it.
func flushedCache(ctx context.Context, w *world) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	c, at := w.newCaller(), time.Now().Add(time.Hour).Truncate(time.Second)
	for round := range 2 {
		for i := range 20 {
			c.submit(ctx, fmt.Sprint("r-", i), "", "", at.Add(time.Duration(round)*time.Second))
		}
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	return nil
}

// heldUpWorker lets pushes fall due that were promised a window apart, while no
// worker runs: without the delivery gate they would leave together.
func heldUpWorker(ctx context.Context, w *world) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	c, now := w.newCaller(), time.Now().Truncate(time.Second)
	for i := range 10 {
		for n := range 3 {
			c.submit(ctx, fmt.Sprint("r-", i), "", "", now.Add(time.Duration(2*n)*time.Second))
		}
	}
	if err := pass(ctx, 5*time.Second); err != nil {
		return err
	}
	_, err := w.startWorker(nil)
	return err
}

// slowProvider holds a recipient's first push, so that the second one falls due
// while it is under way.
func slowProvider(ctx context.Context, w *world) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	c, now := w.newCaller(), time.Now().Truncate(time.Second)
	for i := range 10 {
		hangs := fmt.Sprintf("9-%d", i)
		c.submit(ctx, hangs, "", "", now)
		c.submit(ctx, hangs, "", "", now.Add(2*time.Second))
	}
	if err := pass(ctx, 3*time.Second); err != nil {
		return err
	}
	_, err := w.startWorker(nil)
	return err
}

// wiredWorld is a small world whose programs reach Redis by a wire.
func (l *lab) wiredWorld(ctx context.Context, name string, env ...string) (*world, *wire.Wire, error) {
	w, err := l.smallWorld(ctx, name, env...)
	if err != nil {
		return nil, nil, err
	}
	toRedis, by, err := wireTo(w.redis)
	if err != nil {
		return nil, nil, err
	}
	w.env, w.toRedis = append(w.env, "REDIS_URL="+by), toRedis
	return w, toRedis, nil
}

// deafRedis gives places back while Redis can not be told, and asks for them
// when it can be asked: the cache alone would refuse them.
func deafRedis(ctx context.Context, w *world) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	c, at := w.newCaller(), time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 5 {
		name := fmt.Sprint(farName, i)
		c.submit(ctx, name, "", "", at.Add(time.Minute)) // loads the cache
		o := c.submit(ctx, name, "", "", at)
		w.toRedis.Sever()
		c.cancel(ctx, o)
		w.toRedis.Mend()
		if err := pass(ctx, 1500*time.Millisecond); err != nil { // Redis is left alone for a second
			return err
		}
		c.submit(ctx, name, "", "", at)
	}
	return nil
}

// flushedQueue has Redis forget the wake-ups of pushes that are due soon.
func flushedQueue(ctx context.Context, w *world) error {
	if err := w.dueSoon(ctx); err != nil {
		return err
	}
	if err := pass(ctx, 2*time.Second); err != nil { // until they are armed
		return err
	}
	return w.flush(ctx)
}

// frozenRedis stays so while pushes fall due.
func frozenRedis(ctx context.Context, w *world) error {
	if err := w.dueSoon(ctx); err != nil {
		return err
	}
	w.toRedis.Freeze()
	return nil
}

// dueSoon starts an API and a worker, and submits pushes that are due in four
// seconds.
func (w *world) dueSoon(ctx context.Context) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	if _, err := w.startWorker(nil); err != nil {
		return err
	}
	c, due := w.newCaller(), time.Now().Add(4*time.Second).Truncate(time.Second)
	for i := range 10 {
		c.submit(ctx, fmt.Sprint("r-", i), "", "", due)
	}
	return nil
}
