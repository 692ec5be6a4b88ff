package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/store"
)

// ForgetTenant deletes the keys of a tenant from Redis, and returns their number. Keys of speed limits do not name their tenant, and expire
// by themselves.
func ForgetTenant(ctx context.Context, url config.Secret, st *store.Store, tenant uuid.UUID) (keys int64, err error) {
	if err := st.Identify(ctx); err != nil {
		return 0, err
	}
	prefix, err := redisscript.Installation(st.Installation).Prefix()
	if err != nil {
		return 0, err
	}
	o, err := redisOptions(url, 0)
	if err != nil {
		return 0, err
	}
	client := redisclient.Open(o)
	defer client.Close()
	some := func(ctx context.Context, c redis.Cmdable) error {
		found := c.Scan(ctx, 0, prefix+"{"+tenant.String()+":*", 1000).Iterator()
		for found.Next(ctx) {
			n, err := client.Unlink(ctx, found.Val()).Result()
			if keys += n; err != nil {
				return err
			}
		}
		return found.Err()
	}
	if err := redisclient.ForEachMaster(ctx, client, some); err != nil {
		return keys, fmt.Errorf("redis: %w", err)
	}
	return keys, nil
}
