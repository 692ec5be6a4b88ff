package app

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Policy turns the setting into the rules that the quota knows.
func Policy(c config.Policy) quota.Policy {
	p := make(quota.Policy, len(c.Rules))
	for i, r := range c.Rules {
		p[i] = quota.Rule{Name: r.Name, Limit: r.Limit, Window: r.Window}
	}
	return p
}

func channels(cs []config.Channel, log *slog.Logger) (*channel.Set, error) {
	var entries []channel.Entry
	for _, c := range cs {
		e := channel.Entry{Name: c.Name, Channel: channel.NewLog(log), Retry: push.Retry{
			MaxAttempts: c.MaxAttempts, First: c.Backoff.First, Max: c.Backoff.Max, FailOnUnknown: c.OnUnknown == config.Fail,
		}}
		if c.Type == config.Webhook {
			webhook, err := channel.NewWebhook(channel.WebhookConfig{
				Name: c.Name, URL: string(c.URL), Secret: string(c.Secret), Timeout: c.Timeout, AllowPrivateAddresses: c.AllowPrivateAddresses,
			})
			if err != nil {
				return nil, fmt.Errorf("channel %s: %w", c.Name, err)
			}
			e.Channel = webhook
		}
		entries = append(entries, e)
	}
	return channel.NewSet(entries...)
}

// openRedis makes a client for one server or, where several are named, for a
// cluster. It is quick to give up: everything has a way without Redis.
func openRedis(url string) (redis.UniversalClient, error) {
	o := redis.UniversalOptions{
		DialTimeout: time.Second, ReadTimeout: time.Second, WriteTimeout: time.Second, PoolTimeout: time.Second,
		MaxRetries: 1, PoolSize: 64, ContextTimeoutEnabled: true,
	}
	for _, node := range strings.Split(url, ",") {
		node = strings.TrimSpace(node)
		if !strings.Contains(node, "://") {
			node = "redis://" + node
		}
		one, err := redis.ParseURL(node)
		if err != nil {
			return nil, errors.New("REDIS_URL is no valid Redis URL") // the parser's text may quote the password
		}
		o.Addrs = append(o.Addrs, one.Addr)
		o.Username, o.Password, o.DB, o.TLSConfig = one.Username, one.Password, one.DB, one.TLSConfig
	}
	return redis.NewUniversalClient(&o), nil
}
