package redisscript_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
)

// highest remembers the highest number, and answers it and how many were offered.
var highest = redisscript.NewScript(`
local best = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), tonumber(ARGV[1]))
redis.call('SET', KEYS[1], best)
return {best, redis.call('INCR', KEYS[2])}`)

// A script has its keys, then its arguments, and answers whole numbers.
func ExampleRunner() {
	server, err := devstack.StartRedis(context.Background(), devstack.Config{OwnProcess: true, Progress: os.Stderr})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	o, err := redisclient.ParseURL(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	o.ReadTimeout = time.Minute
	rdb := redisclient.Open(o)
	defer func() { _ = rdb.Close() }()

	runner := redisscript.New(rdb, "scores", redisscript.Config{Timeout: time.Minute, OnError: func(err error) { fmt.Println(err) }})
	for _, score := range []int{7, 12, 9} {
		answer, err := runner.Run(context.Background(), highest.Call([]string{"{scores}:best", "{scores}:count"}, score))
		fmt.Println(answer, err)
	}
	// Output:
	// [7 1] <nil>
	// [12 2] <nil>
	// [12 3] <nil>
}
