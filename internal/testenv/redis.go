package testenv

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/devstack"
)

// indexes hands out the indexes of a Redis, one to a test.
type indexes struct {
	server *devstack.Server
	// free holds the indexes of a private server that no test has. The one
	// that was given back last is handed out last, so that a late writer of
	// a test that is over meets no other test.
	free chan int
}

// Redis returns the URL of an empty Redis index for this test alone. It is
// flushed when the test ends.
//
// A test may flush its index only on a server of our own, and never the whole
// server, for other tests share it: see OwnRedis. Publish and subscribe know
// no indexes, so there tests do hear each other. In a server that REDIS_URL
// names, or that runs on the standard port, the index holds one key that says
// that we borrowed it, and a test waits until one is free.
func Redis(t T) string {
	t.Helper()
	return servers.Redis(t)
}

// Redis returns the URL of an empty Redis index for this test alone.
func (s *Servers) Redis(t T) string {
	t.Helper()
	x, err := s.redis()
	Check(t, err)
	if x.server.Private() {
		return x.take(t)
	}
	return x.borrow(t)
}

// RedisServer returns the server itself.
func (s *Servers) RedisServer(t T) *devstack.Server {
	t.Helper()
	x, err := s.redis()
	Check(t, err)
	return x.server
}

// RedisClient returns a client of a Redis, which is closed when the test ends. It waits for replies longer than a busy
// machine needs, unless the URL says otherwise, so that it sends nothing twice. Each of change changes its options.
func RedisClient(t T, url string, change ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	Check(t, err)
	o.DialTimeout, o.ReadTimeout = cmp.Or(o.DialTimeout, time.Minute), cmp.Or(o.ReadTimeout, time.Minute)
	for _, f := range change {
		f(o)
	}
	client := redis.NewClient(o)
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
	x := &indexes{server: server, free: make(chan int, devstack.PrivateIndexes)}
	for n := range devstack.PrivateIndexes {
		x.free <- n
	}
	return x, nil
}

// take hands out an index of a server of our own.
func (x *indexes) take(t T) string {
	t.Helper()
	u, err := url.Parse(x.server.URL)
	Check(t, err)
	select {
	case n := <-x.free:
		u.Path = "/" + strconv.Itoa(n)
		client := RedisClient(t, u.String())
		Finally(t, func() error {
			ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
			defer cancel()
			err := client.FlushDB(ctx).Err()
			x.free <- n
			return err
		})
	default:
		t.Fatal("every index of the tests' Redis is taken at once")
	}
	return u.String()
}

// borrow takes an index of a server that is not ours, and waits while none is empty.
func (x *indexes) borrow(t T) string {
	t.Helper()
	var s *devstack.Server
	Until(t, 50*time.Millisecond, "the shared Redis has an empty index; unset REDIS_URL to let the tests start their own", func() bool {
		var err error
		if s, err = devstack.BorrowIndex(t.Context(), x.server.URL); !errors.Is(err, devstack.ErrNoEmptyIndex) {
			Check(t, err)
		}
		return err == nil
	})
	Finally(t, s.Close)
	return s.URL
}
