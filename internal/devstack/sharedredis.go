package devstack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// ErrNoEmptyIndex is returned when every index of a shared Redis is in use.
var ErrNoEmptyIndex = errors.New("no empty index to borrow")

// indexMarker is the key that says whose a borrowed index is.
const indexMarker = "sendquota:devstack:owner"

// Both scripts get the marker's key, the own name and another owner's name.
// They change nothing in an index that is neither empty nor marked with it.
var (
	claimIndex = redis.NewScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner == ARGV[2] then redis.call('FLUSHDB') end
if redis.call('DBSIZE') > 0 then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1`)
	returnIndex = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('FLUSHDB')
return 1`)
)

// sharedRedis borrows an index of the server on the standard port.
func (c Config) sharedRedis(ctx context.Context) (*Server, error) {
	s, err := BorrowIndex(ctx, "redis://"+c.places.redisPort)
	if err != nil {
		return nil, fmt.Errorf("server at %s: %w", c.places.redisPort, err)
	}
	c.log.Printf("redis: an empty index of the server at %s, flushed at the end: %s", c.places.redisPort, redacted(s.URL))
	return s, nil
}

// BorrowIndex claims an empty index, other than 0, of a Redis that we share
// with others, and returns it as a Server whose Close empties it and gives it
// back. The claim is one atomic script and leaves a marker key, which must
// not be deleted. Index 0 is never taken, even if it is empty, since it is the
// one that every other program uses.
//
// If nothing is free the error is ErrNoEmptyIndex.
func BorrowIndex(ctx context.Context, server string) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	count, err := countIndexes(ctx, server)
	if err != nil {
		return nil, err
	}
	for n := count - 1; n > 0; n-- {
		at, err := indexURL(server, n)
		if err != nil {
			return nil, err
		}
		owner, err := claim(ctx, at)
		if err != nil {
			return nil, fmt.Errorf("borrow redis index %d: %w", n, err)
		}
		if owner != "" {
			return &Server{Name: "redis", URL: at, release: func() error { return giveBack(at, owner) }}, nil
		}
	}
	return nil, ErrNoEmptyIndex
}

// claim returns the name under which the index at this URL is now ours, or ""
// if another program has it.
func claim(ctx context.Context, at string) (owner string, err error) {
	client, err := redisClient(ctx, at)
	if err != nil {
		return "", err
	}
	defer client.Close()
	// WRONGTYPE or nothing at the marker's key is simply not a dead owner.
	other := client.Get(ctx, indexMarker).Val()
	if !deadOwner(other) {
		other = ""
	}
	host, _ := os.Hostname()
	owner = fmt.Sprintf("%s %d %s", host, os.Getpid(), rand.Text())
	ours, err := claimIndex.Eval(ctx, client, []string{indexMarker}, owner, other).Bool()
	if err != nil || !ours {
		return "", err
	}
	return owner, nil
}

func giveBack(at, owner string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := redisClient(ctx, at)
	if err != nil {
		return err
	}
	defer client.Close()
	ours, err := returnIndex.Eval(ctx, client, []string{indexMarker}, owner).Bool()
	if err != nil {
		return fmt.Errorf("give back %s: %w", redacted(at), err)
	}
	if !ours {
		return fmt.Errorf("give back %s: the key %s is gone, so what is there now may belong to another program", redacted(at), indexMarker)
	}
	return nil
}

// deadOwner tells whether a marker was left by a process of this machine that
// is no more.
func deadOwner(marker string) bool {
	words := strings.Fields(marker)
	host, err := os.Hostname()
	if err != nil || len(words) != 3 || words[0] != host {
		return false
	}
	pid, err := strconv.Atoi(words[1])
	return err == nil && pid > 0 && !alive(pid)
}

// countIndexes asks the server how many indexes it has; one that does not
// tell has the usual sixteen.
func countIndexes(ctx context.Context, server string) (int, error) {
	client, err := redisClient(ctx, server)
	if err != nil {
		return 0, err
	}
	defer client.Close()
	if err := client.Ping(ctx).Err(); err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(client.ConfigGet(ctx, "databases").Val()["databases"])
	if err != nil {
		return 16, nil
	}
	return n, nil
}

// indexURL is the URL of another index of the same server.
func indexURL(server string, n int) (string, error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", err
	}
	if u.Scheme == "unix" {
		q := u.Query()
		q.Set("db", strconv.Itoa(n))
		u.RawQuery = q.Encode()
	} else {
		u.Path = "/" + strconv.Itoa(n)
	}
	return u.String(), nil
}
