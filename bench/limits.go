package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The callers of the limiters, the number of subjects, and the rate and burst of each subject per second.
const (
	limitCallers  = 256
	limitSubjects = 10_000
	limitRate     = 100
)

// limiter is a limiter under test.
type limiter struct {
	name string
	take func(ctx context.Context, subject string) error
}

// limitRace compares limiters, by their names: their decisions a second with many callers, and the times of a lone one.
type limitRace struct {
	*lab
	many, lone map[string][]float64
}

// measureLimits compares our algorithms with two libraries of GCRA, which is
// our leaky_bucket. All have as many callers, the same Redis, and clients of
// the same settings.
func measureLimits(l *lab) {
	all, err := limiters(openRedis(l, l.servers.Redis(l), 64))
	l.check(err)
	race := limitRace{l, map[string][]float64{}, map[string][]float64{}}
	for n := range l.rounds + 1 {
		for _, one := range all {
			l.settle()
			perSecond := race.ask(one, limitCallers, l.round*2/5)
			if n > 0 { // the first one warms up
				race.many[one.name] = append(race.many[one.name], perSecond)
				testenv.Say("  round %d: %s %s/s", n, one.name, count(perSecond))
			}
		}
		l.settle()
		race.askAlone(all, l.round*2/5)
	}
	race.report()
}

// limiters are ours and theirs.
func limiters(rdb redisclient.Client) ([]limiter, error) {
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
	store, err := goredisstore.NewCtx(rdb.(redis.UniversalClient), "throttled:")
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

// ask runs callers for a while. Each sends its next request when it has the answer to the previous one.
func (l limitRace) ask(one limiter, callers int, d time.Duration) (perSecond float64) {
	var asked atomic.Int64
	g, ctx := errgroup.WithContext(l.Context())
	began := time.Now()
	for range callers {
		g.Go(func() error {
			mine := int64(0)
			defer func() { asked.Add(mine) }()
			for ; time.Since(began) < d; mine++ {
				if err := one.take(ctx, strconv.Itoa(rand.IntN(limitSubjects))); err != nil {
					return fmt.Errorf("%s: %w", one.name, err)
				}
			}
			return nil
		})
	}
	l.check(g.Wait())
	return float64(asked.Load()) / time.Since(began).Seconds()
}

// askAlone calls all limiters by turns from one caller, so that a slow moment of the machine affects all, and adds the
// median of each.
func (l limitRace) askAlone(all []limiter, d time.Duration) {
	took := map[string][]time.Duration{}
	for began := time.Now(); time.Since(began) < d; {
		for _, one := range all {
			now := time.Now()
			l.check(one.take(l.Context(), strconv.Itoa(rand.IntN(limitSubjects))))
			took[one.name] = append(took[one.name], time.Since(now))
		}
	}
	for name, latencies := range took {
		l.lone[name] = append(l.lone[name], float64(testenv.Quantile(latencies, 0.5)))
	}
}

// report compares with the same algorithm first.
func (l limitRace) report() {
	many, lone, report := l.many, l.lone, l.lab.report
	for _, theirs := range []string{"redis_rate", "throttled"} {
		report.compare(fmt.Sprintf("Speed limits, leaky_bucket against %s: the same algorithm, %d callers", theirs, limitCallers), pairs{many["leaky_bucket"], many[theirs]}, "decisions/s", 1)
	}
	for _, a := range ratelimit.Algorithms {
		if a != ratelimit.LeakyBucket {
			report.compare(fmt.Sprintf("Speed limits, %s against redis_rate (GCRA)", a), pairs{many[string(a)], many["redis_rate"]}, "decisions/s", 0)
		}
	}
	report.note("The limiters are called in the load's own process, by %d callers about %s subjects, through one client of 64 connections; ours gather what is asked at the same time in one pipeline.",
		limitCallers, count(limitSubjects))
	for _, a := range ratelimit.Algorithms {
		report.compareTimes(fmt.Sprintf("Speed limits, %s against redis_rate: a lone caller, p50", a), pairs{lone[string(a)], lone["redis_rate"]}, 1.3)
	}
	report.note("A lone caller asks all limiters in turn, call by call. It had its decision from throttled after %s (p50).", micro(testenv.Quantile(lone["throttled"], 0.5)))
}

// micro writes a time, in nanoseconds, in microseconds.
func micro(ns float64) string { return fmt.Sprintf("%d µs", time.Duration(ns).Microseconds()) }
