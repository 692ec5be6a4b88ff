package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisClients are the clients of one process, for one server or, where several are named, for a cluster. Each part
// has one of its own: when one waits for a connection because all of its own are in use, the others do not.
type redisClients struct{ queue, cache, callerLimits, tenantLimits, pace redis.UniversalClient }

// fewConnections are enough for parts that gather what they ask.
const fewConnections = 16

func openRedis(url string, connections int) (c redisClients, err error) {
	o, err := redisOptions(url, connections)
	if err != nil {
		return c, err
	}
	c.queue = redis.NewUniversalClient(o)
	for _, part := range []*redis.UniversalClient{&c.cache, &c.callerLimits, &c.tenantLimits, &c.pace} {
		few := *o
		few.PoolSize = min(o.PoolSize, fewConnections)
		*part = redis.NewUniversalClient(&few)
	}
	return c, nil
}

func (c redisClients) close() error {
	return errors.Join(c.queue.Close(), c.cache.Close(), c.callerLimits.Close(), c.tenantLimits.Close(), c.pace.Close())
}

// redisOptions reads REDIS_URL. All nodes of a cluster have the same credentials and TLS, so it is enough if one of
// them is named with them. The client is quick to give up: everything has a way without Redis.
func redisOptions(url string, connections int) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second,
		DialerRetries: 1, MaxRetries: 1, PoolSize: cmp.Or(connections, 64), ContextTimeoutEnabled: true, // a DialerRetries of 1 means one attempt
	}
	for _, node := range strings.Split(url, ",") {
		node = strings.TrimSpace(node)
		if !strings.Contains(node, "://") {
			node = "redis://" + node
		}
		one, err := redis.ParseURL(node)
		if err != nil {
			return nil, errRedisURL
		}
		o.Addrs = append(o.Addrs, one.Addr)
		o.DB = one.DB
		if o.Username == "" && o.Password == "" {
			o.Username, o.Password = one.Username, one.Password
		}
		o.TLSConfig = cmp.Or(o.TLSConfig, one.TLSConfig)
	}
	return o, nil
}

// errRedisURL stands for what the parser says, which may quote the password.
var errRedisURL = errors.New("REDIS_URL is no valid Redis URL; it must look like redis://[user:password@]host:port[/index], rediss://…, " +
	"or host:port,host:port for a cluster, with @ / # ? % and , percent-encoded in the password")

// redisLog passes the Redis client's own messages on. They are details: the part that needed Redis logs that it
// failed.
type redisLog struct{ log *slog.Logger }

// Printf is called by the client.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, args...))
	}
}
