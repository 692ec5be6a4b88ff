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

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/httpapi"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/ratelimit"
)

// Policy turns the setting into the rules that the quota knows.
func Policy(c config.Policy) quota.Policy {
	p := make(quota.Policy, len(c.Rules))
	for i, r := range c.Rules {
		p[i] = quota.Rule{Name: r.Name, Limit: r.Limit, Window: r.Window}
	}
	return p
}

// callerLimits turns the setting into the limits that the API knows.
func callerLimits(l config.APILimits, skipped func()) httpapi.CallerLimits {
	convert := func(from []config.RateLimit) (limits []ratelimit.Limit) {
		for _, r := range from {
			limits = append(limits, ratelimit.Limit{
				Algorithm: ratelimit.Algorithm(r.Algorithm), Limit: r.Limit, Per: r.Per, Burst: r.Burst, Precision: r.Precision,
			})
		}
		return limits
	}
	return httpapi.CallerLimits{PerKey: convert(l.PerKey), PerIP: convert(l.PerIP), TrustedProxies: l.TrustedProxies, Skipped: skipped}
}

// openRedis makes a client for one server or, where several are named, for a
// cluster.
func openRedis(url string) (redis.UniversalClient, error) {
	o, err := redisOptions(url)
	if err != nil {
		return nil, err
	}
	return redis.NewUniversalClient(o), nil
}

// redisOptions reads REDIS_URL. All nodes of a cluster have the same
// credentials and TLS, so it is enough if one of them is named with them. The
// client is quick to give up: everything has a way without Redis.
func redisOptions(url string) (*redis.UniversalOptions, error) {
	o := &redis.UniversalOptions{
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second,
		DialerRetries: 1, MaxRetries: 1, PoolSize: 64, ContextTimeoutEnabled: true, // a DialerRetries of 1 means one attempt
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
	"or host:port,host:port for a cluster")

// redisLog hands the Redis client's own messages on. They are details: whoever
// needed Redis logs that it failed.
type redisLog struct{ log *slog.Logger }

// Printf is called by the client.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, args...))
	}
}
