package testenv

import (
	"context"
	"errors"
	"fmt"
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
	// a test that is over meets nobody.
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
	next := x.take
	if !x.server.Private() {
		next = x.borrow
	}
	u, giveBack, err := next(t.Context())
	Check(t, err)
	t.Cleanup(func() {
		if err := giveBack(); err != nil {
			t.Errorf("%v", err)
		}
	})
	return u
}

// RedisServer returns the server itself.
func (s *Servers) RedisServer(t T) *devstack.Server {
	t.Helper()
	x, err := s.redis()
	Check(t, err)
	return x.server
}

// RedisClient returns a client of a Redis, which is closed when the test ends.
func RedisClient(t T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	Check(t, err)
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
func (x *indexes) take(context.Context) (string, func() error, error) {
	var n int
	select {
	case n = <-x.free:
	default:
		return "", nil, errors.New("every index of the tests' Redis is taken at once")
	}
	u, err := url.Parse(x.server.URL)
	if err != nil {
		return "", nil, err
	}
	u.Path = "/" + strconv.Itoa(n)
	return u.String(), func() error {
		err := flush(u.String())
		x.free <- n
		return err
	}, nil
}

// borrow takes an index of somebody's server, and waits while none is empty.
func (x *indexes) borrow(ctx context.Context) (string, func() error, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		s, err := devstack.BorrowIndex(ctx, x.server.URL)
		if err == nil {
			return s.URL, s.Close, nil
		}
		if !errors.Is(err, devstack.ErrNoEmptyIndex) {
			return "", nil, err
		}
		select {
		case <-ctx.Done():
			return "", nil, fmt.Errorf("the shared Redis has %w; unset REDIS_URL to let the tests start their own", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func flush(url string) error {
	o, err := redis.ParseURL(url)
	if err != nil {
		return err
	}
	client := redis.NewClient(o)
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	if err := client.FlushDB(ctx).Err(); err != nil {
		return fmt.Errorf("flush the test's Redis: %w", err)
	}
	return nil
}
