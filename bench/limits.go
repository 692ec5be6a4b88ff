package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// The callers of the limiters, the subjects that they ask about, and how much
// each of these has in a second, at once and evenly.
const (
	limitCallers  = 256
	limitSubjects = 10_000
	limitRate     = 100
)

// limiter is one way to limit speeds.
type limiter struct {
	name string
	take func(ctx context.Context, subject string) error
}

// measureLimits compares our algorithms with two libraries of GCRA, which is
// our leaky_bucket. All have as many callers, the same Redis, and clients of
// the same settings.
func measureLimits(ctx context.Context, l *lab) error {
	url, err := l.servers.emptyRedis(ctx, oursIndex)
	if err != nil {
		return err
	}
	rdb, err := openRedis(url, 64)
	if err != nil {
		return err
	}
	defer rdb.Close()
	all, err := limiters(rdb)
	if err != nil {
		return err
	}
	many, lone := map[string][]float64{}, map[string][]time.Duration{}
	for n := range l.rounds + 1 {
		for _, one := range all {
			if err := l.settle(ctx); err != nil {
				return err
			}
			perSecond, err := ask(ctx, one, limitCallers, l.round*2/5)
			if err != nil {
				return err
			}
			if n > 0 { // the first one warms up
				many[one.name] = append(many[one.name], perSecond)
				say("  round %d: %s %s/s", n, one.name, count(perSecond))
			}
		}
		if err := l.settle(ctx); err != nil {
			return err
		}
		if err := askAlone(ctx, all, l.round*2/5, lone); err != nil {
			return err
		}
	}
	l.reportLimits(many, lone)
	return nil
}

// limiters are ours and theirs.
func limiters(rdb *redis.Client) ([]limiter, error) {
	var all []limiter
	ours := ratelimit.New(rdb, ratelimit.Config{Config: redisscript.Config{Timeout: 5 * time.Second}})
	for _, a := range ratelimit.Algorithms {
		limit := ratelimit.Limit{Algorithm: a, Limit: limitRate, Per: time.Second}
		if a == ratelimit.LeakyBucket {
			limit.Burst = limitRate
		}
		all = append(all, limiter{string(a), func(ctx context.Context, subject string) error {
			_, err := ours.Take(ctx, subject, 1, ratelimit.Rule{Subject: subject, Limit: limit})
			return err
		}})
	}
	rate := redis_rate.NewLimiter(rdb)
	all = append(all, limiter{"redis_rate", func(ctx context.Context, subject string) error {
		_, err := rate.Allow(ctx, subject, redis_rate.Limit{Rate: limitRate, Burst: limitRate, Period: time.Second})
		return err
	}})
	store, err := goredisstore.NewCtx(rdb, "throttled:")
	if err != nil {
		return nil, err
	}
	gcra, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(limitRate), MaxBurst: limitRate - 1})
	if err != nil {
		return nil, err
	}
	gcra.SetMaxCASAttemptsLimit(100) // by default it gives up where several ask at once
	return append(all, limiter{"throttled", func(ctx context.Context, subject string) error {
		_, _, err := gcra.RateLimitCtx(ctx, subject, 1)
		return err
	}}), nil
}

// ask has so many callers ask for a while, each the next as soon as it has the
// answer to the last.
func ask(ctx context.Context, l limiter, callers int, d time.Duration) (perSecond float64, err error) {
	var (
		left sync.WaitGroup
		mu   sync.Mutex
		all  int
	)
	began := time.Now()
	for range callers {
		left.Go(func() {
			var mine int
			var failed error
			for ; failed == nil && time.Since(began) < d; mine++ {
				failed = l.take(ctx, strconv.Itoa(rand.IntN(limitSubjects)))
			}
			mu.Lock()
			defer mu.Unlock()
			all += mine
			if failed != nil {
				err = fmt.Errorf("%s: %w", l.name, failed)
			}
		})
	}
	left.Wait()
	return float64(all) / time.Since(began).Seconds(), err
}

// askAlone has one caller ask all limiters in turn, call by call, so that a slow moment
// of the machine is one for all, and adds the median of each.
func askAlone(ctx context.Context, all []limiter, d time.Duration, medians map[string][]time.Duration) error {
	took := map[string][]time.Duration{}
	for began := time.Now(); time.Since(began) < d; {
		for _, l := range all {
			now := time.Now()
			if err := l.take(ctx, strconv.Itoa(rand.IntN(limitSubjects))); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
			took[l.name] = append(took[l.name], time.Since(now))
		}
	}
	for name, latencies := range took {
		medians[name] = append(medians[name], quantile(latencies, 0.5))
	}
	return nil
}

// reportLimits compares with the same algorithm first.
func (l *lab) reportLimits(many map[string][]float64, lone map[string][]time.Duration) {
	against := func(ours, theirs string) (all pairs) {
		for n, speed := range many[ours] {
			all = append(all, pair{ours: speed, theirs: many[theirs][n]})
		}
		return all
	}
	for _, theirs := range []string{"redis_rate", "throttled"} {
		l.report.compare(fmt.Sprintf("Speed limits, leaky_bucket against %s: the same algorithm, %d callers", theirs, limitCallers), against("leaky_bucket", theirs), "decisions/s", 1)
	}
	for _, a := range ratelimit.Algorithms {
		if a != ratelimit.LeakyBucket {
			l.report.compare(fmt.Sprintf("Speed limits, %s against redis_rate (GCRA)", a), against(string(a), "redis_rate"), "decisions/s", 0)
		}
	}
	l.report.note("The limiters are called in the load's own process, by %d callers about %s subjects, through one client of 64 connections; ours gather what is asked at the same time in one pipeline.",
		limitCallers, count(limitSubjects))
	for _, a := range ratelimit.Algorithms {
		var rounds pairs
		for n, took := range lone[string(a)] {
			rounds = append(rounds, pair{ours: float64(took), theirs: float64(lone["redis_rate"][n])})
		}
		l.report.compareTimes(fmt.Sprintf("Speed limits, %s against redis_rate: a lone caller, p50", a), rounds, 1.3)
	}
	l.report.note("A lone caller asks all limiters in turn, call by call. It had its decision from throttled after %s (p50).", micro(quantile(lone["throttled"], 0.5)))
}

// micro writes a time in microseconds.
func micro(d time.Duration) string { return fmt.Sprintf("%d µs", d.Microseconds()) }
