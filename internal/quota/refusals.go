package quota

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// Bounds of the refusals that the cache stores: the latest ones of a recipient, for a while. No decision depends on
// them.
const (
	keptRefusals = 20
	// A list is trimmed when it has grown this long, which is rare.
	mostRefusals = 2 * keptRefusals
	// RefusalTime is the retention of a refusal.
	RefusalTime = 7 * 24 * time.Hour
	// refusalsAtOnce bounds an exchange, and waitingRefusals the queue for it: further refusals are dropped.
	refusalsAtOnce  = 500
	waitingRefusals = 5000
)

// refusal is a text to append to the refusals of a recipient.
type refusal struct {
	key  string
	text []byte
}

// Refused stores a refusal, a text without the recipient's id. It returns at once.
func (c *Cache) Refused(r Recipient, text []byte) {
	if prefix, err := c.redis.Prefix(); err == nil {
		c.refused.Go(refusal{refusalsKey(prefix, r), text})
	}
}

func refusalsKey(prefix string, r Recipient) string { return tag(prefix, r) + ":refused" }

// keepRefusals writes a batch of refusals to Redis.
func (c *Cache) keepRefusals(ctx context.Context, all []refusal) ([]struct{}, error) {
	lengths := make([]*redis.IntCmd, len(all))
	err := c.redis.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) {
		for i, one := range all {
			lengths[i] = p.LPush(ctx, one.key, one.text)
			p.PExpire(ctx, one.key, RefusalTime)
		}
	})
	if err == nil && slices.ContainsFunc(lengths, tooLong) {
		err = c.redis.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) {
			for i, one := range all {
				if tooLong(lengths[i]) {
					p.LTrim(ctx, one.key, 0, keptRefusals-1)
				}
			}
		})
	}
	return make([]struct{}, len(all)), err
}

func tooLong(length *redis.IntCmd) bool { return length.Val() >= mostRefusals }

// Refusals returns the last refusals of a recipient, the latest first; none if Redis does not answer.
func (c *Cache) Refusals(ctx context.Context, r Recipient) []string {
	prefix, err := c.redis.Prefix()
	if err != nil {
		return nil
	}
	var kept *redis.StringSliceCmd
	if c.redis.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) {
		kept = p.LRange(ctx, refusalsKey(prefix, r), 0, keptRefusals-1)
	}) != nil {
		return nil
	}
	return kept.Val()
}

// Erase drops all data of a recipient in Redis: the bookings and the refusals.
func (c *Cache) Erase(ctx context.Context, r Recipient) error {
	_ = c.Flush(ctx) // later updates come from a later request or another process, and expire
	prefix, err := c.redis.Prefix()
	if err != nil {
		return err
	}
	c.Forget(r)
	return c.redis.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) { p.Del(ctx, refusalsKey(prefix, r)) })
}
