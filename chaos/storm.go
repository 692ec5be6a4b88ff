package main

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/wire"
)

// stormLease is the lease of the storm's workers.
const stormLease = 2 * time.Second

// storm breaks everything in turn under load, lets it settle, and judges.
func storm(ctx context.Context, l *lab) (err error) {
	stack, err := devstack.Start(ctx, devstack.Config{OwnProcess: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stack.Close()) }()
	toPostgres, databaseURL, err := wireTo(stack.DatabaseURL)
	if err != nil {
		return err
	}
	defer toPostgres.Close()
	toRedis, redisURL, err := wireTo(stack.RedisURL)
	if err != nil {
		return err
	}
	defer toRedis.Close()
	if _, err := store.Migrate(ctx, stack.DatabaseURL, store.MigrateConfig{}); err != nil {
		return err
	}
	w, err := l.newWorld(ctx, setting{
		name: "storm", database: stack.DatabaseURL, redis: stack.RedisURL, programDatabase: databaseURL, programRedis: redisURL,
		rules: []rule{{1, 2 * time.Second}, {3, 10 * time.Second}, {6, 40 * time.Second}},
		lease: stormLease, armLease: 3 * time.Second, ttl: 5 * time.Minute, apis: 2, provider: "badly",
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	apis, workers, err := w.startAll(ctx)
	if err != nil {
		return err
	}

	rng := rand.New(rand.NewPCG(l.seed, 0))
	tracks := [][]fault{
		redisFaults(stack.Redis, toRedis), postgresFaults(stack.Postgres, toPostgres, l.duration >= 5*time.Minute),
		processFaults(apis, workers, stormLease, rng), outerFaults(w, stack.RedisURL),
	}
	began := time.Now()
	l.blow(ctx, w, tracks, rng.Uint64())
	if ctx.Err() != nil {
		return ctx.Err()
	}
	say("the storm is over after %s; waiting until all has settled", time.Since(began).Round(time.Second))
	calm := time.Now()
	if _, err := w.settle(ctx, calm.Add(time.Hour), 90*time.Second); err != nil {
		return err
	}
	l.report.measured("storm: everything had settled %s after the last fault", time.Since(calm).Round(100*time.Millisecond))
	return l.conclude(ctx, w, tracks)
}

// wireTo returns a wire to the server of a URL, and the URL by way of it.
func wireTo(server string) (*wire.Wire, string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return nil, "", err
	}
	w, err := wire.New(u.Host)
	if err != nil {
		return nil, "", err
	}
	u.Host = w.Addr()
	return w, u.String(), nil
}

// startAll starts two APIs and three workers. The clock of one worker is three
// minutes ahead, that of another three minutes behind.
func (w *world) startAll(ctx context.Context) (apis, workers []*program, err error) {
	for n := range 2 {
		p, err := w.startAPI(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		apis = append(apis, p)
	}
	for _, off := range []string{"0", "180", "-180"} {
		p, err := w.startWorker(nil, clockVariable+"="+off)
		if err != nil {
			return nil, nil, err
		}
		workers = append(workers, p)
	}
	return apis, workers, nil
}

// blow lets faults happen on all tracks at once, under load, for the duration
// of the storm.
func (l *lab) blow(ctx context.Context, w *world, tracks [][]fault, seed uint64) {
	ctx, cancel := context.WithTimeout(ctx, l.duration)
	defer cancel()
	var wg sync.WaitGroup
	for n, track := range tracks {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() { l.follow(ctx, slices.Clone(track), rng) })
	}
	wg.Go(func() { w.load(ctx, seed) })
	wg.Wait()
}

// follow lets the faults of a track happen one after another, in another order
// each time round.
func (l *lab) follow(ctx context.Context, track []fault, rng *rand.Rand) {
	for {
		rng.Shuffle(len(track), func(i, j int) { track[i], track[j] = track[j], track[i] })
		for _, f := range track {
			if pass(ctx, time.Duration(300+rng.IntN(900))*time.Millisecond) != nil {
				return
			}
			if err := f.do(ctx); err != nil && ctx.Err() == nil {
				say("%s: %v", f.name, err) // its server is down by another fault
				continue
			}
			l.report.meet(f.name, 1)
		}
	}
}

// conclude judges the storm, and wants it to have met what belongs to one.
func (l *lab) conclude(ctx context.Context, w *world, tracks [][]fault) error {
	j, err := w.judge(ctx)
	if err != nil {
		return err
	}
	l.report.judged("storm", j)
	n, result := linearizable(j.facts.ops, w.rules, isFar)
	l.report.sometimes("operations checked for linearizability", n)
	if result == porcupine.Illegal {
		l.report.violate("storm: what callers were told about bookings could not have happened in any order")
	}
	if result == porcupine.Unknown {
		l.report.violate("storm: whether what callers were told could have happened was not decided within a minute")
	}
	if len(j.found) > 0 || result != porcupine.Ok {
		if err := w.history.write(w.dir + "/history.jsonl"); err != nil {
			return err
		}
	}
	if l.duration >= scarce {
		for _, track := range tracks {
			for _, f := range track {
				l.report.sometimes(f.name, 0)
			}
		}
	}
	l.events(w, j.facts)
	return nil
}

// events counts what must have happened in a storm, for it to prove anything.
func (l *lab) events(w *world, f *facts) {
	var unknown, lost, again, expired, failed, possibly, replayed, refused, canceledOps, movedOps, lostForever int
	var lateness []time.Duration
	for _, sends := range f.sends {
		for i, s := range sends {
			switch {
			case s.lost():
				lost++
			case s.Outcome == "unknown":
				unknown++
			}
			if i > 0 {
				again++
			}
		}
		lateness = append(lateness, sends[0].Started.Sub(f.rows[sends[0].Push].SendAt))
	}
	for _, r := range f.rows {
		expired += count(r.Status == "expired")
		failed += count(r.Status == "failed")
	}
	for _, o := range f.ops {
		possibly += count(o.Possibly)
		replayed += count(o.Replayed)
		refused += count(o.Kind == submitted && o.Problem == "quota-exceeded")
		canceledOps += count(o.Kind == canceled && o.Status == 200)
		movedOps += count(o.Kind == moved && o.Status == 200)
		lostForever += count(!o.known())
	}
	r := l.report
	r.sometimes("submits refused by the quota", refused)
	r.sometimes("submits replayed by their key", replayed)
	r.sometimes("answers 503", w.history.counted("503"))
	r.sometimes("no answer at all", w.history.counted("no answer"))
	r.sometimes("cancels", canceledOps)
	r.sometimes("moves", movedOps)
	r.sometimes("attempts of unknown outcome", unknown)
	r.sometimes("attempts beyond the first", again)
	r.sometimes("pushes deferred by actual sends", w.said(`"msg":"push deferred by its recipient's actual sends"`))
	r.sometimes("caches that did without Redis", w.said(`"msg":"the quota cache does without Redis; Postgres decides alone"`))
	rare := r.meet
	if l.duration >= scarce {
		rare = r.sometimes
	}
	rare("cancels of what may have been delivered", possibly)
	rare("attempts lost and reaped", lost)
	r.sometimes("workers that polled Postgres", w.said(`"msg":"Redis does not do what the queue needs; polling Postgres for what is due"`))
	if l.skew {
		r.sometimes("workers whose clock is minutes off", w.clocksOff())
	}
	r.meet("pushes failed", failed)
	r.meet("pushes expired", expired)
	r.meet("callers who never learned", lostForever)
	if n := w.history.counted("503 without Retry-After"); n > 0 {
		r.violate("storm: %d answers 503 did not say when to try again", n)
	}
	if n := w.history.counted("500"); n > 0 {
		r.violate("storm: %d answers 500", n)
	}
	slices.Sort(lateness)
	if len(lateness) > 0 {
		at := func(q float64) time.Duration {
			return lateness[int(q*float64(len(lateness)-1))].Round(time.Millisecond)
		}
		r.measured("storm: first attempts began p50 %s, p90 %s, p99 %s, at most %s after their second", at(.5), at(.9), at(.99), at(1))
	}
}

// clocksOff counts the workers whose log says another time than it was.
func (w *world) clocksOff() (n int) {
	for _, p := range w.programs {
		var line struct{ Time time.Time }
		text, _, _ := strings.Cut(p.process().Log(), "\n")
		if json.Unmarshal([]byte(text), &line) == nil && line.Time.Sub(p.began).Abs() > 2*time.Minute {
			n++
		}
	}
	return n
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}
