package testenv

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// indexes hands out the indexes of a Redis, one to a test. Several processes may
// share the server: the list of free ones is in its index 0.
type indexes struct{ server *devstack.Server }

// freeIndexes is the key of the list, in index 0. The index that was given back
// last is handed out last, so that a late writer of a test that is over meets no
// other test.
const freeIndexes = "sendquota:test:free"

// listIndexes makes the list, once, of ARGV[1] - 1 indexes.
var listIndexes = redis.NewScript(`
if redis.call('EXISTS', KEYS[1], KEYS[2]) > 0 then return end
redis.call('SET', KEYS[2], 1)
for n = 1, tonumber(ARGV[1]) - 1 do redis.call('RPUSH', KEYS[1], n) end`)

// Redis returns the URL of an empty Redis index for this test alone. It is
// flushed when the test ends.
//
// A test may flush its index, and never the whole server, for other tests share
// it: see OwnRedis. Publish and subscribe know no indexes, so there tests do hear
// each other. In a server that TEST_REDIS_URL names, an index that holds a key is
// never used.
func Redis(t T) string {
	t.Helper()
	return servers.Redis(t)
}

// Redis returns the URL of an empty Redis index for this test alone.
func (s *Servers) Redis(t T) string {
	t.Helper()
	x, err := s.redis()
	Check(t, err)
	return x.take(t)
}

// RedisServer returns the server itself.
func (s *Servers) RedisServer(t T) *devstack.Server {
	t.Helper()
	x, err := s.redis()
	Check(t, err)
	return x.server
}

// RedisClient returns a client of a Redis, which is closed when the test ends. Its time-outs suit a busy machine,
// unless the URL sets them, so that it sends nothing twice. Each of change changes its options.
func RedisClient(t T, url string, change ...func(*redisclient.Options)) redisclient.Client {
	t.Helper()
	o, err := redisclient.ParseURL(url)
	Check(t, err)
	o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, time.Minute), cmp.Or(o.ReadTimeout, time.Minute)
	for _, f := range change {
		f(&o)
	}
	client := redisclient.Open(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func newIndexes(c devstack.Config) (*indexes, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	server, err := devstack.StartRedis(ctx, c)
	if err != nil {
		return nil, err
	}
	x := &indexes{server: server}
	if err := x.list(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("list the indexes of the tests' Redis: %w", err), server.Close())
	}
	return x, nil
}

// list makes the list of indexes, unless another process has done so. A server that hides the number of its indexes has
// the usual sixteen.
func (x *indexes) list(ctx context.Context) error {
	first, err := x.client(0)
	if err != nil {
		return err
	}
	defer first.Close()
	count := cmp.Or(first.ConfigGet(ctx, "databases").Val()["databases"], "16")
	if err := listIndexes.Run(ctx, first, []string{freeIndexes, freeIndexes + ":made"}, count).Err(); !errors.Is(err, redis.Nil) {
		return err
	}
	return nil
}

func (x *indexes) client(n int) (redisclient.Client, error) {
	o, err := redisclient.ParseURL(x.server.URL)
	if err != nil {
		return nil, err
	}
	o.DB, o.PoolSize, o.DialTimeout, o.ReadTimeout = n, 1, time.Minute, time.Minute
	return redisclient.Open(o), nil
}

// take hands out an empty index until the test ends. It waits while there is none.
func (x *indexes) take(t T) string {
	t.Helper()
	u, err := url.Parse(x.server.URL)
	Check(t, err)
	first, err := x.client(0)
	Check(t, err)
	t.Cleanup(func() { _ = first.Close() })
	var mine redisclient.Client
	Until(t, 50*time.Millisecond, "the tests' Redis has an empty index", func() bool {
		n, err := first.LPop(t.Context(), freeIndexes).Int()
		if errors.Is(err, redis.Nil) {
			return false
		}
		Check(t, err)
		u.Path = "/" + strconv.Itoa(n)
		mine, err = x.client(n)
		Check(t, err)
		size, err := mine.DBSize(t.Context()).Result()
		Check(t, err)
		if size > 0 {
			_ = mine.Close() // another user's index, so it never returns to the list
			return false
		}
		Finally(t, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
			defer cancel()
			defer mine.Close()
			return errors.Join(mine.FlushDB(ctx).Err(), first.RPush(ctx, freeIndexes, n).Err())
		})
		return true
	})
	return u.String()
}
