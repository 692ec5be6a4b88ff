package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/queue"
)

// checkTime bounds the answers of the servers to a person's check.
const checkTime = 10 * time.Second

// CheckServers connects to Postgres and Redis like the services, and returns all of their deficits, one on each line.
// It changes nothing except a key in Redis that expires after a second.
func CheckServers(ctx context.Context, cfg config.Config) error {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	sealer, err := cfg.Sealer()
	if err != nil {
		return err
	}
	return errors.Join(
		named("Postgres", pg.Check(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: cfg.Database.MaxConnections, ReadConns: cfg.Database.ReadConnections, Sealer: sealer})),
		named("Redis", checkRedis(ctx, cfg)),
		checkOffered(ctx, cfg),
	)
}

// checkOffered returns an error for each tenant that a channel is offered to and that does not exist.
func checkOffered(ctx context.Context, cfg config.Config) error {
	if !slices.ContainsFunc(cfg.Channels, func(c config.Channel) bool { return len(c.OfferedTo) > 0 }) {
		return nil
	}
	st, err := store.Open(ctx, string(cfg.DatabaseURL), store.Config{MaxConns: 2, Timeout: checkTime})
	if err != nil {
		return nil // reported for Postgres
	}
	defer st.Close()
	known := map[string]bool{}
	err = st.EachTenant(ctx, uuid.Nil, func(t accounts.TenantInfo) error {
		known[t.Name] = true
		return nil
	})
	if err != nil {
		return nil // the same
	}
	var all []error
	for _, c := range cfg.Channels {
		for _, tenant := range c.OfferedTo {
			if !known[tenant] {
				all = append(all, fmt.Errorf("channels.%s.offered_to: there is no tenant %q; to create it: sendquota tenants create %[2]q", c.Name, tenant))
			}
		}
	}
	return errors.Join(all...)
}

// checkRedis checks the same as [App.redisWorks], except for the queues: their names come from Postgres.
func checkRedis(ctx context.Context, cfg config.Config) error {
	o, err := redisOptions(cfg.RedisURL, 1)
	if err != nil {
		return err
	}
	redis.SetLogger(redisLog{slog.New(slog.DiscardHandler)}) // the error contains the message
	client := redisclient.Open(o)
	defer client.Close()
	q := queue.New(client, cfg.Delivery.Queues, func() (string, bool) { return "", false })
	if err := q.Works(ctx); err != nil {
		return err
	}
	return q.CheckServer(ctx)
}

// named splits joined errors into lines, and puts the name of a server before each.
func named(server string, err error) error {
	if err == nil {
		return nil
	}
	all := []error{err}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		all = joined.Unwrap()
	}
	for i, err := range all {
		all[i] = fmt.Errorf("%s: %s", server, strings.Join(strings.Fields(err.Error()), " ")) // pgx breaks lines
	}
	return errors.Join(all...)
}
