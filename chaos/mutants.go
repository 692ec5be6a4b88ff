package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/wire"
)

// mutants tells the story of every mutant twice: with the mutant, and with the code as it is.
func mutants(ctx context.Context, l *lab) error {
	programs := make([]string, len(allMutants))
	var g errgroup.Group
	g.SetLimit(2) // compiling one mutant and linking another
	for i, m := range allMutants {
		g.Go(func() (err error) {
			programs[i], err = l.compileMutant(ctx, m)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for i, m := range allMutants {
		for _, program := range []string{programs[i], ""} {
			wg.Go(func() {
				err := l.tell(ctx, m, program)
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			})
		}
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (l *lab) compileMutant(ctx context.Context, m mutant) (string, error) {
	o, err := mutated(ctx, m.mutations)
	if err != nil {
		return "", fmt.Errorf("mutant %s: %w", m.name, err)
	}
	bin, err := l.compile(ctx, "without-"+m.name, o, m.program)
	return filepath.Join(bin, m.program), err
}

// tell runs a story with the mutated program at a path, or with the lab's if that is empty.
func (l *lab) tell(ctx context.Context, m mutant, program string) (err error) {
	name := "whole-" + m.name
	if program != "" {
		name = "without-" + m.name
	}
	w, toRedis, err := l.wiredWorld(ctx, name)
	if err != nil {
		return err
	}
	w.mutant = program
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
	if program == "" {
		l.report.judged(w.name, j)
		return nil
	}
	found := strings.Join(j.found, "\n")
	caught := true
	for _, e := range m.evidence {
		if !strings.Contains(found, e) {
			caught = false
			l.report.violate("%s survives: the check %q found nothing", name, e)
		}
	}
	if caught {
		l.report.sometimes(fmt.Sprintf("mutant %s caught by %s", m.name, strings.Join(m.evidence, ", ")), 1)
	}
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

// crowdedMove moves a push to a second after another one of its recipient.
func crowdedMove(ctx context.Context, w *world) error {
	if _, err := w.startAPI(ctx, 0); err != nil {
		return err
	}
	c, at := w.newCaller(), time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 10 {
		name := fmt.Sprint("r-", i)
		c.submit(ctx, name, "", "", at)
		c.move(ctx, c.submit(ctx, name, "", "", at.Add(10*time.Minute)), at.Add(time.Second))
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
