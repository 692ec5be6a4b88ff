package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// UnsuitableError says why a Redis that works is none that sendquota should have.
type UnsuitableError struct{ state, detail string }

// Error says it in one sentence.
func (e *UnsuitableError) Error() string { return "queue: " + e.detail }

// State says it in a word.
func (e *UnsuitableError) State() string { return e.state }

// Detail says what to do.
func (e *UnsuitableError) Detail() string { return e.detail }

// Suits reports whether Redis, each master of a cluster, tells the time, and keeps what it has: [*UnsuitableError]. What a user of
// Redis may not ask counts as good.
func (q *Queue) Suits(ctx context.Context) error {
	if cluster, is := q.rdb.(*redis.ClusterClient); is {
		return cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error { return suits(ctx, c) })
	}
	return suits(ctx, q.rdb)
}

func suits(ctx context.Context, c redis.Cmdable) error {
	switch err := c.Time(ctx).Err(); {
	case err == nil:
	case strings.HasPrefix(err.Error(), "NOPERM") || strings.Contains(err.Error(), "unknown command"):
		return &UnsuitableError{"no_time", "Redis refuses the command TIME, without which speed limits and the pace of channels cannot be decided; " +
			"take it out of rename-command, or allow it with ACL SETUSER … +time"}
	default:
		return fmt.Errorf("queue: %w", err)
	}
	info, err := c.Info(ctx, "memory").Result()
	if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
		return fmt.Errorf("queue: %w", err)
	}
	for line := range strings.Lines(info) {
		if policy, is := strings.CutPrefix(strings.TrimSpace(line), "maxmemory_policy:"); is && policy != "noeviction" {
			return &UnsuitableError{"evicts", "Redis has the maxmemory-policy " + policy + ", and may drop wake-ups and what is used of speed limits; set it to noeviction"}
		}
	}
	return nil
}
