package main

import (
	"context"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// stormLease is the lease of the storm's workers.
const stormLease = 2 * time.Second

// storm breaks everything in turn under load, and checks what is left when all
// has settled.
func storm(name string, lanes int) func(t testenv.T, l *lab) {
	return func(t testenv.T, l *lab) {
		postgres, redis := testenv.OwnPostgres(t), testenv.OwnRedis(t)
		toPostgres, databaseURL := testenv.Proxy(t, postgres.URL)
		toRedis, redisURL := testenv.Proxy(t, redis.URL)
		b := l.setup(t, config{
			name: name, lanes: lanes, database: postgres.URL, redis: redis.URL, env: []string{"DATABASE_URL=" + databaseURL, "REDIS_URL=" + redisURL},
			rules: []rule{{1, 2 * time.Second}, {3, 10 * time.Second}, {6, 40 * time.Second}},
			lease: stormLease, armLease: 3 * time.Second, ttl: 5 * time.Minute, apis: 2, behaviour: "badly",
		})
		b.teams = b.newTeams()
		apis, workers := b.startAll()
		b.startSchedules(60)
		campaigns := b.startCampaigns(300)
		rng := rand.New(rand.NewPCG(l.seed, 0))
		tracks := [][]fault{
			redisFaults(b, redis, toRedis), postgresFaults(postgres, toPostgres, l.duration >= 5*time.Minute),
			processFaults(apis, workers, stormLease, rng), outerFaults(b),
		}
		began := time.Now()
		l.blow(b, tracks, rng.Uint64())
		testenv.Check(t, t.Context().Err())
		testenv.Say("the %s part is over after %s; waiting until all has settled", name, time.Since(began).Round(time.Second))
		calm := time.Now()
		b.endCampaigns(campaigns, 90*time.Second)
		b.endBulks(60 * time.Second)
		b.endSchedules(false, 30*time.Second)
		b.settle(calm.Add(time.Hour), 90*time.Second)
		l.report.measured("%s: everything had settled %s after the last fault", name, time.Since(calm).Round(100*time.Millisecond))
		l.conclude(b, tracks)
	}
}

// startAll starts two APIs and three workers. The clock of one worker is three minutes ahead, and the clock of another
// three minutes behind.
func (b *bundle) startAll() (apis, workers []*program) {
	for n := range b.addrs {
		apis = append(apis, b.startAPI(n))
	}
	for _, off := range []string{"0", "180", "-180"} {
		workers = append(workers, b.startWorker(nil, clockVariable+"="+off))
	}
	return apis, workers
}

// blow lets faults happen on all tracks at once, under load, for the duration
// of the storm.
func (l *lab) blow(b *bundle, tracks [][]fault, seed uint64) {
	ctx, cancel := context.WithTimeout(b.Context(), l.duration)
	defer cancel()
	var wg sync.WaitGroup
	for n, track := range tracks {
		rng := rand.New(rand.NewPCG(seed, uint64(n)))
		wg.Go(func() { l.follow(ctx, slices.Clone(track), rng) })
	}
	wg.Go(func() { b.load(ctx, seed) })
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
				testenv.Say("%s: %v", f.name, err) // its server is down by another fault
				continue
			}
			l.report.meet(f.name, 1)
		}
	}
}

// conclude checks the guarantees, and that the storm has met its faults and events.
func (l *lab) conclude(b *bundle, tracks [][]fault) {
	j := b.check()
	l.report.record(b.name, j)
	l.report.sometimes("operations checked for linearizability", j.ordered)
	if l.duration >= scarce {
		for _, track := range tracks {
			for _, f := range track {
				l.report.sometimes(f.name, 0)
			}
		}
	}
	l.events(b, j.facts)
	l.teamEvents(j)
}

// rare notes an event that a storm must have met at least once, unless it is a short one.
func (l *lab) rare() func(kind string, n int) {
	if l.duration >= scarce {
		return l.report.sometimes
	}
	return l.report.meet
}

// events counts what must have happened in a storm, for it to prove anything.
func (l *lab) events(b *bundle, f *facts) {
	r, sends, rows := l.report, slices.Concat(slices.Collect(maps.Values(f.sends))...), slices.Collect(maps.Values(f.rows))
	rare := l.rare()
	rare("submits refused by the quota", number(f.ops, func(o op) bool { return o.Kind == submitted && o.Problem == "quota-exceeded" }))
	rare("submits replayed by their key", number(f.ops, func(o op) bool { return o.Replayed }))
	r.sometimes("answers 503", b.history.counted("503"))
	r.sometimes("no answer at all", b.history.counted("no answer"))
	rare("cancels", number(f.ops, func(o op) bool { return o.Kind == canceled && o.Status == 200 }))
	rare("moves", number(f.ops, func(o op) bool { return o.Kind == moved && o.Status == 200 }))
	r.sometimes("attempts of unknown outcome", number(sends, func(s send) bool { return s.Outcome == "unknown" && !s.lost() }))
	r.sometimes("attempts beyond the first", len(sends)-len(f.sends))
	rare("pushes deferred by actual sends", b.said(`"msg":"push deferred by a rule"`))
	r.sometimes("caches that did without Redis", b.said(`"msg":"quota cache: Redis failed; Postgres decides alone"`))
	rare("cancels of what may have been delivered", number(f.ops, func(o op) bool { return o.Possibly }))
	rare("attempts lost and reaped", number(sends, send.lost))
	r.sometimes("workers that polled Postgres", b.said(`"msg":"Redis cannot serve the queue; polling Postgres for due pushes"`))
	if l.skew {
		r.sometimes("workers whose clock is minutes off", b.clocksOff())
	}
	r.sometimes("occurrences of schedules submitted", number(f.recurs, func(o recurs) bool { return o.Outcome == "submitted" }))
	r.meet("occurrences of schedules missed", number(f.recurs, func(o recurs) bool { return o.Reason == "missed" }))
	r.sometimes("recipients of campaigns booked", number(f.lines, func(l campaignLine) bool { return l.Outcome == "booked" }))
	rare("pushes changed by bulk changes", number(f.bulkLines, func(l bulkLine) bool { return l.Outcome == "changed" }))
	r.meet("moves of bulk changes refused by the quota", number(f.bulkLines, func(l bulkLine) bool { return l.Outcome == "quota-exceeded" }))
	r.meet("pushes failed", number(rows, func(p row) bool { return p.Status == "failed" }))
	r.meet("pushes expired", number(rows, func(p row) bool { return p.Status == "expired" }))
	r.meet("callers who never learned", number(f.ops, func(o op) bool { return !o.known() }))
	if n := b.history.counted("no Retry-After"); n > 0 {
		r.violate("%s: %d answers 429 and 503 had no time for the next try", b.name, n)
	}
	if n := b.history.counted("500"); n > 0 {
		r.violate("%s: %d answers 500", b.name, n)
	}
	var lateness []time.Duration
	for id, all := range f.sends {
		lateness = append(lateness, all[0].Started.Sub(f.rows[id].SendAt))
	}
	at := func(q float64) time.Duration { return testenv.Quantile(lateness, q).Round(time.Millisecond) }
	r.measured("%s: first attempts began p50 %s, p90 %s, p99 %s, at most %s after their second", b.name, at(.5), at(.9), at(.99), at(1))
}

// number counts the elements that satisfy a condition.
func number[E any](all []E, is func(E) bool) (n int) {
	for _, one := range all {
		n += count(is(one))
	}
	return n
}

// clocksOff counts the workers whose log says another time than it was.
func (b *bundle) clocksOff() (n int) {
	for _, p := range b.programs {
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
