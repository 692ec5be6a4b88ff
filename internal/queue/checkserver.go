package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/redisclient"
)

// CheckServer reports whether Redis, each master of a cluster, is new enough, has TIME, and never evicts keys. Its error
// lists all defects: [*health.Deficits]. Properties that the Redis user may not query count as good.
func (q *Queue) CheckServer(ctx context.Context) error {
	return redisclient.ForEachMaster(ctx, q.rdb, checkServer)
}

func checkServer(ctx context.Context, c redis.Cmdable) error {
	var lacks health.Deficits
	switch err := c.Time(ctx).Err(); {
	case err == nil:
	case strings.HasPrefix(err.Error(), "NOPERM") || strings.Contains(err.Error(), "unknown command"):
		lacks.Add("no_time", "Redis refuses the command TIME, which speed limits and channels need; "+
			"take it out of rename-command, or allow it with ACL SETUSER … +time")
	default:
		return fmt.Errorf("queue: %w", err)
	}
	info, err := c.Info(ctx).Result()
	if _, refused := errors.AsType[redis.Error](err); err != nil && !refused {
		return fmt.Errorf("queue: %w", err)
	}
	inspect(info, &lacks)
	return lacks.Err()
}

// inspect adds the defects that the answer to INFO shows. Properties that a server does not report count as good.
// Valkey began as Redis 7.2: the version of Redis that it reports for old programs is not its own.
func inspect(info string, lacks *health.Deficits) {
	valkey := strings.Contains(info, "\nvalkey_version:")
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		switch {
		case name == "redis_version" && !valkey && tooOld(value):
			lacks.Add("old_version", "Redis has the version %s, and sendquota needs 6.2 or later; upgrade it", value)
		case name == "maxmemory_policy" && value != "noeviction":
			lacks.Add("evicts", "Redis has the maxmemory-policy %s, and may drop wake-ups and speed limits; set it to noeviction", value)
		}
	}
}

// tooOld reports whether a version is before 6.2.
func tooOld(version string) bool {
	var major, minor int
	n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor)
	return n == 2 && (major < 6 || major == 6 && minor < 2)
}
