package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// redisClients are the clients of one process, for one server, for a cluster, or for the master that sentinels name. Each
// part has its own: if all connections of one part are in use, the other parts do not wait.
type redisClients struct{ queue, cache, callerLimits, tenantLimits, pace redisclient.Client }

// fewConnections are enough for parts that gather their calls.
const fewConnections = 16

func openRedis(url config.Secret, connections int) (c redisClients, err error) {
	o, err := redisOptions(url, connections)
	if err != nil {
		return c, err
	}
	c.queue = redisclient.Open(o)
	for _, part := range []*redisclient.Client{&c.cache, &c.callerLimits, &c.tenantLimits, &c.pace} {
		few := o
		few.PoolSize = min(o.PoolSize, fewConnections)
		*part = redisclient.Open(few)
	}
	return c, nil
}

func (c redisClients) close() error {
	return errors.Join(c.queue.Close(), c.cache.Close(), c.callerLimits.Close(), c.tenantLimits.Close(), c.pace.Close())
}

// redisOptions parses REDIS_URL. The client gives up quickly, because every part can work without Redis.
func redisOptions(url config.Secret, connections int) (redisclient.Options, error) {
	servers, err := config.ParseRedisURL(url)
	if err != nil {
		return redisclient.Options{}, err
	}
	return redisclient.Options{
		Addrs: servers.Addrs, DB: servers.Database, Cluster: servers.Cluster, Master: servers.Master,
		Username: servers.Username, Password: servers.Password, SentinelUsername: servers.SentinelUsername, SentinelPassword: servers.SentinelPassword,
		TLS:         redisTLS(servers),
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second,
		DialerRetries: 1, MaxRetries: 1, PoolSize: cmp.Or(connections, 64), ContextTimeoutEnabled: true, // a DialerRetries of 1 means one attempt
	}, nil
}

// redisTLS returns the TLS configuration. A server and every node of a cluster need a certificate for the first host of
// REDIS_URL, whatever their addresses are. Sentinels and their servers need one for their own address.
func redisTLS(servers config.RedisServers) *tls.Config {
	if !servers.TLS {
		return nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: servers.SkipVerify}
	if servers.Master == "" {
		c.ServerName, _, _ = net.SplitHostPort(servers.Addrs[0])
	}
	return c
}

// redisLog logs the Redis client's own messages at level debug. The part that called Redis logs the failure itself.
type redisLog struct{ log *slog.Logger }

// Printf logs a message of the client.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis: "+fmt.Sprintf(format, args...))
	}
}
