package ratelimit_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/ratelimit"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// A user may send three messages at once, and then one more every ten seconds.
func ExampleLimiter() {
	rdb, stop := startRedis() // any client of Redis
	defer stop()
	limiter := ratelimit.New(rdb, patient)
	perUser := ratelimit.Rule{
		Subject: "user 7",
		Limit:   ratelimit.Limit{Algorithm: ratelimit.TokenBucket, Limit: 1, Per: 10 * time.Second, Burst: 3},
	}
	for range 4 {
		d, err := limiter.Take(context.Background(), "my service", 1, perUser)
		if err != nil {
			fmt.Println(err) // Redis does not answer: the service has to choose
			return
		}
		r := d.Results[0]
		fmt.Printf("allowed %t, %d left, retry after %s\n", d.Allowed, r.Remaining, r.RetryAfter.Round(time.Second))
	}
	// Output:
	// allowed true, 2 left, retry after 0s
	// allowed true, 1 left, retry after 0s
	// allowed true, 0 left, retry after 0s
	// allowed false, 0 left, retry after 10s
}

// A message costs its sender one of a hundred an hour, and the whole service one of a thousand. Either both limits are
// charged, or none. A message that was not sent after all is given back.
func ExampleLimiter_Refund() {
	rdb, stop := startRedis()
	defer stop()
	limiter, ctx := ratelimit.New(rdb, patient), context.Background()
	rules := []ratelimit.Rule{
		{Subject: "user 7", Limit: ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 100, Per: time.Hour}},
		{Subject: "all", Limit: ratelimit.Limit{Algorithm: ratelimit.SlidingWindow, Limit: 1000, Per: time.Hour}},
	}
	show := func(what string, d ratelimit.Decision, err error) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(what, d.Allowed, d.Results[0].Remaining, d.Results[1].Remaining)
	}
	d, err := limiter.Take(ctx, "my service", 1, rules...)
	show("take:", d, err)
	d, err = limiter.Take(ctx, "my service", 100, rules...)
	show("take 100:", d, err)
	d, err = limiter.Refund(ctx, "my service", 1, rules...)
	show("refund:", d, err)
	// Output:
	// take: true 99 999
	// take 100: false 99 999
	// refund: true 100 1000
}

// patient waits longer for Redis than by default, for a service that would rather wait than go without.
var patient = ratelimit.Config{Config: redisscript.Config{Timeout: time.Minute}}

// startRedis starts a Redis for one example.
func startRedis() (rdb redisclient.Client, stop func()) {
	server, err := devstack.StartRedis(context.Background(), devstack.Config{OwnProcess: true, Progress: os.Stderr})
	if err != nil {
		panic(err)
	}
	o, err := redisclient.ParseURL(server.URL)
	if err != nil {
		panic(err)
	}
	o.ReadTimeout = time.Minute
	rdb = redisclient.Open(o)
	return rdb, func() { _, _ = rdb.Close(), server.Close() }
}
