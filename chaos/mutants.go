package main

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendquota/sendquota/internal/faults"
	"github.com/sendquota/sendquota/internal/testenv"
)

// mutant is a story in which one gate alone, or one that does the other's work, stands
// between a recipient and too many pushes, or none. With the gates switched off it must
// end badly, and be noticed; with the gates on it must end well.
type mutant struct {
	gates    string
	story    func(w *bundle)
	evidence []string // of which the judge must find each
}

var allMutants = []mutant{
	{string(faults.Judge), flushedLedger, []string{"I2 promised", "promised-window"}},
	{string(faults.Delivery), heldUpWorker, []string{"I2 actual", "actual-window"}},
	{string(faults.InFlight), slowProvider, []string{"overlap"}},
	{string(faults.Confirm), deafRedis, []string{"no order"}},
	{string(faults.Rearm + "," + faults.Poll), flushedQueue, []string{"still scheduled"}},
	{string(faults.Poll), frozenRedis, []string{"still scheduled"}},
}

// mutants tells every story twice.
func mutants(t testenv.T, l *lab) {
	var wg sync.WaitGroup
	for _, m := range allMutants {
		for _, off := range []bool{false, true} {
			wg.Go(func() {
				testenv.Check(t, testenv.Run(t.Context(), func(t testenv.T) { l.tell(t, m, off) }))
			})
		}
	}
	wg.Wait()
}

func (l *lab) tell(t testenv.T, m mutant, off bool) {
	gates := strings.ReplaceAll(m.gates, ",", "-")
	name, env := "whole-"+gates, []string(nil)
	if off {
		name, env = "without-"+gates, []string{"FAULTS_OFF=" + m.gates}
	}
	w := l.setupSmall(t, name, env...)
	var through string
	w.toRedis, through = testenv.Proxy(t, w.Redis)
	w.env = append(w.env, "REDIS_URL="+through)
	m.story(w)
	w.settle(time.Now().Add(time.Minute), 12*time.Second)
	j := w.judge()
	if _, result := linearizable(j.facts.ops, w.rules, isFar); result != porcupine.Ok {
		j.broken("I5", "what callers were told could have happened in no order (%s)", result)
	}
	if !off {
		l.report.judged(w.name, j)
		return
	}
	found := strings.Join(j.found, "\n")
	for _, e := range m.evidence {
		if !strings.Contains(found, e) {
			l.report.violate("the mutant without the gate %s survives: the judge did not find %q", m.gates, e)
		}
	}
	l.report.sometimes("mutant caught: no gate "+m.gates, 1)
}

// flushedLedger books a minute for everybody, has Redis forget it, and asks for
// the same minute again: the ledger alone would give it.
func flushedLedger(w *bundle) {
	w.startAPI(0)
	c, at := w.newCaller(), time.Now().Add(time.Hour).Truncate(time.Second)
	for round := range 2 {
		for i := range 20 {
			c.submit(w.Context(), fmt.Sprint("r-", i), "", "", at.Add(time.Duration(round)*time.Second))
		}
		w.flush()
	}
}

// heldUpWorker lets pushes fall due that were promised a window apart, while no
// worker runs: without the delivery gate they would leave together.
func heldUpWorker(w *bundle) {
	w.startAPI(0)
	c, now := w.newCaller(), time.Now().Truncate(time.Second)
	for i := range 10 {
		for n := range 3 {
			c.submit(w.Context(), fmt.Sprint("r-", i), "", "", now.Add(time.Duration(2*n)*time.Second))
		}
	}
	testenv.Sleep(w, 5*time.Second)
	w.startWorker(nil)
}

// slowProvider holds a recipient's first push, so that the second one falls due
// while it is under way.
func slowProvider(w *bundle) {
	w.startAPI(0)
	c, now := w.newCaller(), time.Now().Truncate(time.Second)
	for i := range 10 {
		hangs := fmt.Sprintf("9-%d", i)
		c.submit(w.Context(), hangs, "", "", now)
		c.submit(w.Context(), hangs, "", "", now.Add(2*time.Second))
	}
	testenv.Sleep(w, 3*time.Second)
	w.startWorker(nil)
}

// deafRedis gives places back while Redis can not be told, and asks for them
// when it can be asked: the ledger alone would refuse them.
func deafRedis(w *bundle) {
	w.startAPI(0)
	c, at := w.newCaller(), time.Now().Add(time.Hour).Truncate(time.Second)
	for i := range 5 {
		name := fmt.Sprint(farName, i)
		c.submit(w.Context(), name, "", "", at.Add(time.Minute)) // loads the ledger
		o := c.submit(w.Context(), name, "", "", at)
		w.toRedis.Sever()
		c.cancel(w.Context(), o)
		w.toRedis.Mend()
		testenv.Sleep(w, 1500*time.Millisecond) // Redis is left alone for a second
		c.submit(w.Context(), name, "", "", at)
	}
}

// flushedQueue has Redis forget the wake-ups of pushes that are due soon.
func flushedQueue(w *bundle) {
	w.dueSoon()
	testenv.Sleep(w, 2*time.Second) // until they are armed
	w.flush()
}

// frozenRedis stays so while pushes fall due.
func frozenRedis(w *bundle) {
	w.dueSoon()
	w.toRedis.Freeze()
}

// dueSoon starts an API and a worker, and submits pushes that are due in four
// seconds.
func (w *bundle) dueSoon() {
	w.startAPI(0)
	w.startWorker(nil)
	c, due := w.newCaller(), time.Now().Add(4*time.Second).Truncate(time.Second)
	for i := range 10 {
		c.submit(w.Context(), fmt.Sprint("r-", i), "", "", due)
	}
}
