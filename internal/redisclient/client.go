package redisclient

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
)

// Client sends commands to one server, to a cluster, or to the master that sentinels name. It is safe for concurrent
// use.
type Client interface {
	redis.Cmdable
	Do(ctx context.Context, args ...any) *redis.Cmd
	Process(ctx context.Context, cmd redis.Cmder) error
	Close() error
}

// Options configure a client. A zero value of a field means the default of go-redis, whose documentation describes the
// fields of the same names.
type Options struct {
	Addrs                              []string // host:port
	Cluster                            bool     // Addrs are nodes of a cluster
	Master                             string   // Addrs are sentinels, which know the master by this name
	DB                                 int
	Username, Password                 string
	SentinelUsername, SentinelPassword string
	TLS                                *tls.Config

	DialTimeout, ReadTimeout, WriteTimeout, PoolTimeout time.Duration

	Dialer                func(ctx context.Context, network, addr string) (net.Conn, error)
	DialerRetries         int // attempts to connect, with the first
	MaxRetries            int // of a command; -1: none
	PoolSize              int
	ContextTimeoutEnabled bool
	DisableIdentity       bool
}

// ParseURL parses redis://user:password@host:port/database?options as [redis.ParseURL] does.
func ParseURL(url string) (Options, error) {
	o, err := redis.ParseURL(url)
	if err != nil {
		return Options{}, err
	}
	return Options{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLS: o.TLSConfig,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		MaxRetries: o.MaxRetries, PoolSize: o.PoolSize,
	}, nil
}

// Open returns a client. It connects when it is used. The caller closes it.
func Open(o Options) Client {
	return redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: o.Addrs, IsClusterMode: o.Cluster, MasterName: o.Master, DB: o.DB, Username: o.Username, Password: o.Password,
		SentinelUsername: o.SentinelUsername, SentinelPassword: o.SentinelPassword, TLSConfig: o.TLS,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		Dialer: o.Dialer, DialerRetries: o.DialerRetries, MaxRetries: o.MaxRetries, PoolSize: o.PoolSize,
		ContextTimeoutEnabled: o.ContextTimeoutEnabled, DisableIdentity: o.DisableIdentity,
	})
}

// IsCluster reports whether a client is for a cluster.
//
//go:noinline
func IsCluster(c Client) bool {
	_, is := c.(*redis.ClusterClient)
	return is
}

// ForEachMaster calls do with a client of each master of a cluster, concurrently, and returns one of the errors. For a
// single server it calls do once.
//
//go:noinline
func ForEachMaster(ctx context.Context, c Client, do func(context.Context, redis.Cmdable) error) error {
	if cluster, is := c.(*redis.ClusterClient); is {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return do(ctx, node) })
	}
	return do(ctx, c)
}

// Reload reads again, in the background, which node of a cluster has which keys.
//
//go:noinline
func Reload(c Client) {
	if cluster, is := c.(*redis.ClusterClient); is {
		cluster.ReloadState(context.Background())
	}
}
