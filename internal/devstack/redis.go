package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// PrivateIndexes is the number of indexes of our throw-away Redis: enough for one per test.
const PrivateIndexes = 1024

// StartRedis finds or starts Redis alone. See Start.
func StartRedis(ctx context.Context, c Config) (*Server, error) {
	c = c.prepared()
	if c.RedisURL != "" && !c.OwnProcess {
		return &Server{Name: "redis", URL: c.RedisURL}, nil
	}
	return c.obtain(ctx, service{
		name:    "Redis",
		program: "redis-server",
		apt:     "redis-server",
		brew:    "redis",
		binary:  c.searchPaths.redisBin,
		recipe:  c.redisRecipe,
		inside:  c.startMiniredis,
	})
}

func (c Config) redisRecipe(_ context.Context, f *folder) (r recipe, err error) {
	password := ""
	if !f.throwAway {
		if password, err = f.password(); err != nil {
			return r, err
		}
	}
	binary, err := c.searchPaths.redisBin()
	u := func(addr string) string {
		u := url.URL{Scheme: "redis", Host: addr, Path: "/0"}
		if password != "" {
			u.User = url.UserPassword("", password)
		}
		return u.String()
	}
	return recipe{
		binary: binary,
		command: func(addr string) process.Command {
			// "-" reads the settings from stdin, where no other user sees the password.
			return process.Command{Path: binary, Args: []string{"-"}, Stdin: c.redisSettings(f, addr, password), Orphan: syscall.SIGTERM}
		},
		ready: redisAnswers,
		url:   u,
	}, err
}

func (c Config) redisSettings(f *folder, addr, password string) string {
	host, port, _ := net.SplitHostPort(addr)
	var b strings.Builder
	set := func(name, value string) { fmt.Fprintf(&b, "%s %s\n", name, value) }
	set("bind", host)
	set("port", port)
	set("dir", `"`+f.data+`"`)
	set("daemonize", "no")
	// A write that does not fit must fail loudly: an evicted wake-up is lost.
	set("maxmemory-policy", "noeviction")
	set("save", `""`)
	switch {
	case c.ClusterNode:
		set("cluster-enabled", "yes")
	case f.throwAway:
		set("databases", fmt.Sprint(PrivateIndexes))
	}
	if password != "" {
		set("requirepass", password)
	}
	if c.durable() {
		set("appendonly", "yes")
		set("appendfsync", "everysec")
	}
	return b.String()
}

// redisAnswers checks that the server at this URL has loaded its data and is the process that we started, not another
// one that took the port first.
func redisAnswers(ctx context.Context, url string, pid int) error {
	client, err := redisClient(ctx, url)
	if err != nil {
		return err
	}
	defer client.Close()
	info, err := client.Info(ctx).Result()
	if err != nil {
		return err
	}
	if !strings.Contains(info, fmt.Sprintf("process_id:%d\r\n", pid)) {
		return errors.New("another server answers on the port")
	}
	if strings.Contains(info, "\nloading:1") {
		return errors.New("it is loading its data")
	}
	return nil
}

// redisClient is for a few commands only: no retries, no pool to speak of. It
// connects once by itself first, since go-redis logs what it cannot reach,
// and here that is an ordinary answer.
func redisClient(ctx context.Context, url string) (redisclient.Client, error) {
	o, err := redisclient.ParseURL(url)
	if err != nil {
		return nil, err
	}
	dialer := net.Dialer{Timeout: 5 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", o.Addrs[0])
	if err != nil {
		return nil, err
	}
	_ = conn.Close()
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.PoolSize = 1
	o.DisableIdentity = true
	o.ContextTimeoutEnabled = true
	return redisclient.Open(o), nil
}

// startMiniredis runs a stand-in for Redis inside this process. Its clock for
// expiry stands still unless it is moved, so it is moved once a second.
func (c Config) startMiniredis() (*Server, error) {
	mini, err := miniredis.Run()
	if err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	c.log.Printf("redis: WARNING: no Redis found; using miniredis inside this process. It is slow and forgets everything at the end. Install redis-server for anything but a first look.")
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				mini.FastForward(time.Second)
			case <-quit:
				return
			}
		}
	}()
	return &Server{Name: "redis", URL: "redis://" + mini.Addr() + "/0", release: func() error {
		close(quit)
		<-done
		mini.Close()
		return nil
	}}, nil
}
