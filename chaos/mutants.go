package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/faults"
)

// mutant is a story in which one gate alone stands between a recipient and too
// many pushes. With the gate switched off it must end badly, and be noticed;
// with the gate on it must end well.
type mutant struct {
	gate     faults.Gate
	story    func(ctx context.Context, w *world) error
	evidence []string // of which the judge must find each
}

var allMutants = []mutant{
	{faults.Judge, flushedLedger, []string{"I2 promised", "promised-window"}},
	{faults.Delivery, heldUpWorker, []string{"I2 actual", "actual-window"}},
	{faults.InFlight, slowProvider, []string{"overlap"}},
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
	name, env := "whole-"+string(m.gate), []string(nil)
	if off {
		name, env = "without-"+string(m.gate), []string{"FAULTS_OFF=" + string(m.gate)}
	}
	w, err := l.smallWorld(ctx, name, env...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	if err := m.story(ctx, w); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if _, err := w.settle(ctx, time.Now().Add(time.Minute), 25*time.Second); err != nil {
		return err
	}
	j, err := w.judge(ctx)
	if err != nil {
		return err
	}
	if !off {
		l.report.judged(w.name, j)
		return nil
	}
	found := strings.Join(j.found, "\n")
	for _, e := range m.evidence {
		if !strings.Contains(found, e) {
			l.report.violate("the mutant without the gate %s survives: the judge did not find %q", m.gate, e)
		}
	}
	l.report.sometimes("mutant caught: no gate "+string(m.gate), 1)
	return nil
}

// flushedLedger books a minute for everybody, has Redis forget it, and asks for
// the same minute again: the ledger alone would give it.
func flushedLedger(ctx context.Context, w *world) error {
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
