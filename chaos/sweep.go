package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/failpoint"
)

// crash is one case of the sweep: what happens to which program.
type crash struct {
	how   string // kill or stop
	point failpoint.Point
	hit   int
}

func (c crash) String() string { return fmt.Sprintf("%s@%s:%d", c.how, c.point, c.hit) }

// atOnce is how many cases run at the same time: they mostly wait.
const atOnce = 6

// sweep lets a process die or freeze at every point, each in a world of its own
// with the same work, and looks at what is left when everything has settled.
func sweep(ctx context.Context, l *lab) error {
	var crashes []crash
	for _, p := range failpoint.Points {
		for hit := 1; hit <= l.hits; hit++ {
			crashes = append(crashes, crash{"kill", p, hit})
		}
		crashes = append(crashes, crash{"stop", p, 1})
	}
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		errs  []error
		slots = make(chan struct{}, atOnce)
		hit   = map[string]int{}
	)
	for _, c := range crashes {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			reached, err := l.crash(ctx, c)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", c, err))
			}
			if reached {
				hit[c.how+" at "+string(c.point)]++
			}
		})
	}
	wg.Wait()
	killed, stopped := 0, 0
	for _, p := range failpoint.Points {
		killed += hit["kill at "+string(p)]
		stopped += hit["stop at "+string(p)]
		for _, how := range []string{"kill", "stop"} {
			if hit[how+" at "+string(p)] == 0 {
				l.report.sometimes(how+" at "+string(p), 0)
			}
		}
	}
	l.report.sometimes("process killed at a point", killed)
	l.report.sometimes("process frozen at a point", stopped)
	return errors.Join(append(errs, ctx.Err())...)
}

// ofAPI reports whether it is the API that comes to a point.
func ofAPI(p failpoint.Point) bool {
	what, _, _ := strings.Cut(string(p), ".")
	return what == "submit" || what == "book" || what == "batch" || what == "cancel" || what == "move"
}

// crash runs one case.
func (l *lab) crash(ctx context.Context, c crash) (reached bool, err error) {
	w, err := l.smallWorld(ctx, "sweep-"+strings.NewReplacer("@", "-", ":", "-").Replace(c.String()))
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	plan := []string{c.String()}
	var apiPlan, workerPlan []string
	switch {
	case ofAPI(c.point):
		apiPlan = plan
	case c.point == failpoint.ReapFound || c.point == failpoint.ReapDone: // there must be something to reap
		workerPlan = append([]string{"kill@send.written:6"}, plan...)
	default:
		workerPlan = plan
	}
	api, err := w.startAPI(ctx, 0, apiPlan...)
	if err != nil {
		return false, err
	}
	victim := api
	thaw := w.thaw(func() *program { return victim }, c)
	defer func() { thaw() }()
	if err := w.smallWork(ctx); err != nil {
		return false, err
	}
	if c.point == failpoint.ExpireCommitted { // or the wake-ups of the late ones are faster
		if err := errors.Join(w.flush(ctx), pass(ctx, 3*time.Second)); err != nil {
			return false, err
		}
	}
	worker, err := w.startWorker(workerPlan)
	if err != nil {
		return false, err
	}
	if !ofAPI(c.point) {
		thaw()
		victim = worker
		thaw = w.thaw(func() *program { return victim }, c)
	}
	if err := w.conclude(ctx, 25*time.Second); err != nil {
		return false, err
	}
	return victim.said("at "+string(c.point)+",") > 0, nil
}

// smallWorld is a world with short windows, in servers that are shared.
func (l *lab) smallWorld(ctx context.Context, name string, env ...string) (*world, error) {
	database, err := l.newDatabase(ctx)
	if err != nil {
		return nil, err
	}
	redis, err := l.newIndex()
	if err != nil {
		return nil, err
	}
	return l.newWorld(ctx, setting{
		name: name, database: database, redis: redis, rules: []rule{{1, 2 * time.Second}, {4, 20 * time.Second}},
		lease: time.Second, armLease: time.Second, ttl: time.Minute, apis: 1, env: env,
	})
}

// thaw looks for a program that has frozen itself, gives its work to another
// one of its kind until the lease is over, and has it go on. The function that
// it returns ends that.
func (w *world) thaw(victim func() *program, c crash) (end func()) {
	if c.how != "stop" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for p := victim(); ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
			if !p.stopped() {
				continue
			}
			if p.kind == "worker" {
				if _, err := w.startWorker(nil); err != nil {
					say("%v", err)
				}
			}
			time.Sleep(2200 * time.Millisecond) // twice the lease, and the time of a reaper
			p.process().Signal(syscall.SIGCONT)
			return
		}
	}()
	return func() { cancel(); <-done }
}

// smallWork is the same for every case: single pushes with and without a key,
// a batch, cancels and moves, and recipients whose first attempt goes wrong.
func (w *world) smallWork(ctx context.Context) error {
	c := w.newCaller()
	now := time.Now().Truncate(time.Second)
	at := func(s int) time.Time { return now.Add(time.Duration(s) * time.Second) }
	for i := range 3 {
		name := fmt.Sprint("late-", i)
		o := op{Kind: submitted, Recipient: name, At: now.UTC(), Key: name, Began: time.Now(), Brief: true}
		body := pushBody(name, "", now)
		body["expires_at"] = at(2).UTC().Format(time.RFC3339)
		a, tries := c.insist(ctx, "POST", "/v1/pushes", name, body)
		o.settle(a, tries)
		o.ID = a.body.ID
		w.history.add(o)
	}
	for i := range 4 {
		keyed, free := fmt.Sprint("keyed-", i), fmt.Sprint("free-", i)
		for s, key := range []string{"a", "b", "c"} {
			c.submit(ctx, keyed, "", keyed+key, at(2+s))
			c.submit(ctx, free, "", "", at(2+s))
		}
		far := c.submit(ctx, keyed, "", keyed+"far", at(3600))
		if c.cancel(ctx, far); i > 0 {
			far = c.submit(ctx, keyed, "", keyed+"again", at(3601))
			c.move(ctx, far, at(3610))
		}
	}
	for i := range manners {
		name := fmt.Sprintf("%d-manner", i)
		c.submit(ctx, name, "", name, at(2))
		c.submit(ctx, name+"-once", "once", name+"-once", at(2))
	}
	for i := range 3 {
		var wanted []op
		for n := range 4 {
			name := fmt.Sprintf("batch-%d-%d", i, n)
			wanted = append(wanted, op{Recipient: name, At: at(2).UTC()}, op{Recipient: name, At: at(4).UTC()}, op{Recipient: name, At: at(5).UTC()})
		}
		c.batch(ctx, fmt.Sprint("batch-", i), false, wanted)
	}
	return ctx.Err()
}

// conclude waits until all has settled, and judges.
func (w *world) conclude(ctx context.Context, patience time.Duration) error {
	if _, err := w.settle(ctx, time.Now().Add(5*time.Minute), patience); err != nil {
		return err
	}
	j, err := w.judge(ctx)
	if err != nil {
		return err
	}
	w.lab.report.judged(w.name, j)
	return nil
}
