package ratelimit

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// client connects as the programs do: it asks again if a connection breaks. Only how long it waits is left to the limiter.
func client(t testing.TB, url string) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url, func(o *redisclient.Options) {
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.MaxRetries, o.ContextTimeoutEnabled = time.Minute, time.Minute, time.Minute, 1, true
	})
}

// patient is a client that does not mind to be held up.
func patient(t *testing.T, url string) redisclient.Client {
	t.Helper()
	return testenv.RedisClient(t, url+"?read_timeout=1m")
}

// strict returns a configuration that fails the test on every error, and allows for a busy machine.
func strict(t testing.TB) Config {
	return Config{Config: redisscript.Config{Timeout: time.Minute, OnError: func(err error) { t.Error(err) }}}
}

func setupReal(t testing.TB) (*Limiter, redisclient.Client) {
	t.Helper()
	rdb := client(t, testenv.Redis(t))
	return New(rdb, strict(t)), rdb
}

// bundle is a limiter on a real Redis whose scripts have another head: their clock is a key that the test sets, and
// keys live for an hour whatever that clock says. All else is the scripts that programs run.
type bundle struct {
	*Limiter
	rdb redisclient.Client
	now int64 // microseconds
}

// setup also changes other texts of the scripts, each for the next.
func setup(t testing.TB, changes ...string) *bundle {
	t.Helper()
	rdb := client(t, testenv.Redis(t))
	return &bundle{Limiter: newLimiter(rdb, strict(t), textWithClock(t, changes...)), rdb: rdb}
}

func textWithClock(t testing.TB, changes ...string) func(string) string {
	return func(name string) string {
		text := file(name)
		if name == "head" {
			text = change(t, text, "local time = redis.call('TIME')\n", "", "time[1] * 1000000 + time[2]\n", "tonumber(redis.call('GET', 'clock'))\n",
				"math.ceil(t / 1000) + 1", "3600000")
		}
		if name == "sliding" {
			text = change(t, text, changes...)
		}
		return text
	}
}

// change puts each second text in the place of the one before it.
func change(t testing.TB, text string, changes ...string) string {
	t.Helper()
	for i := 0; i < len(changes); i += 2 {
		if strings.Count(text, changes[i]) != 1 {
			t.Fatalf("the script has not one %q", changes[i])
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	return text
}

// at moves the clock.
func (p *bundle) at(t testing.TB, now int64) {
	t.Helper()
	p.now = now
	if err := p.rdb.Set(context.Background(), "clock", now, 0).Err(); err != nil {
		t.Fatal(err)
	}
}
