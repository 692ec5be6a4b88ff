package quota

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"
)

// What the cache keeps of a recipient's refusals: the last of them, for a while. Nothing is decided by them.
const (
	keptRefusals = 20
	// A list is cut when it has got so long, which few ever do.
	mostRefusals = 2 * keptRefusals
	// RefusalTime is how long a refusal is kept.
	RefusalTime = 7 * 24 * time.Hour
	// refusalsAtOnce bounds an exchange, and waitingRefusals what may wait for one: of more, some are left out.
	refusalsAtOnce  = 500
	waitingRefusals = 5000
)

// refusal is a text on its way to the refusals of a recipient.
type refusal struct {
	key  string
	text []byte
}

// Refused notes a refusal, which is a text without the recipient's id, and keeps the text. It returns at once.
func (c *Cache) Refused(r Recipient, text []byte) {
	if prefix, err := c.redis.Prefix(); err == nil {
		c.refused.Go(refusal{refusalsKey(prefix, r), text})
	}
}

func refusalsKey(prefix string, r Recipient) string { return tag(prefix, r) + ":refused" }

// keepRefusals sends what was noted.
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

// Erase drops all that Redis has of a recipient: the bookings and the refusals.
func (c *Cache) Erase(ctx context.Context, r Recipient) error {
	_ = c.Flush(ctx) // what comes later is of a later request, or of another process, and expires
	prefix, err := c.redis.Prefix()
	if err != nil {
		return err
	}
	c.Forget(r)
	return c.redis.Pipeline(ctx, func(ctx context.Context, p redis.Pipeliner) { p.Del(ctx, refusalsKey(prefix, r)) })
}
