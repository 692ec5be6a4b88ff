package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// measureMemory divides what Redis uses by what it was used for.
func measureMemory(ctx context.Context, l *lab) error {
	s, err := l.newSendquota(ctx, "http://127.0.0.1:9/")
	if err != nil {
		return err
	}
	n, err := l.newNaive(ctx)
	if err != nil {
		return err
	}
	rdb, err := openRedis(s.redis, 1)
	if err != nil {
		return err
	}
	defer rdb.Close()
	naiveBytes, err := l.memoryOf(ctx, n.submit(l, farAhead()), 1)
	if err != nil {
		return err
	}
	first := l.recipients.Load()
	booking, err := l.memoryOf(ctx, s.submit(l, farAhead()), 1)
	if err != nil {
		return err
	}
	further := s.submit(l, time.Now().Add(49*time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339))
	further.next = around(first, l.recipients.Load())
	next, err := l.memoryOf(ctx, further, 1)
	if err != nil {
		return err
	}
	if err := onlyCaches(ctx, rdb, l); err != nil {
		return err
	}
	beyond, keys, err := l.memoryBeyond(ctx, s, rdb)
	if err != nil {
		return err
	}
	armed, err := l.memoryArmed(ctx, s, rdb)
	if err != nil {
		return err
	}
	add := func(name, ours, theirs, wanted, ok string) {
		l.report.add(row{measurement: l.report.measuring, name: name, ours: ours, theirs: theirs, wanted: wanted, ok: ok})
	}
	add("Redis memory per booking, while its recipient's cache is loaded (10 minutes)",
		fmt.Sprintf("first of a recipient %s B, further %s B, then 0", count(booking), count(next)),
		fmt.Sprintf("%s B, ZSET and task, until it is sent", count(naiveBytes)), "—", "—")
	add("Redis memory per push scheduled beyond the horizon, by batch", fmt.Sprintf("%s, %d keys", inBytes(beyond), keys), inBytes(naiveBytes), "none", yes(keys == 0 && beyond < noise))
	add("Redis memory per wake-up, from 90 s before its time", inBytes(armed), "—", "—", "—")
	return nil
}

// noise is how many bytes per push Redis' own bookkeeping may come to.
const noise = 16

func inBytes(n float64) string { return count(n) + " B" }

// memoryOf runs a load over as many pushes as a backlog has and returns the
// bytes per push that it left in Redis. A short load before opens connections.
func (l *lab) memoryOf(ctx context.Context, d load, pushes int) (float64, error) {
	d.total = max(1, 1000/pushes)
	if _, err := l.drive(ctx, d); err != nil {
		return 0, err
	}
	before, err := l.quietMemory(ctx)
	if err != nil {
		return 0, err
	}
	d.total = l.backlog / pushes
	if _, err := l.drive(ctx, d); err != nil {
		return 0, err
	}
	after, err := l.quietMemory(ctx)
	return float64(after-before) / float64(l.backlog), err
}

// quietMemory asks for the memory when it has stopped changing: Redis frees
// what connections have buffered only after some time.
func (l *lab) quietMemory(ctx context.Context) (bytes int64, err error) {
	return bytes, eventually(ctx, func() (bool, error) {
		before := bytes
		bytes, err = l.servers.redisMemory(ctx)
		return max(bytes-before, before-bytes) < 2000, err
	})
}

// onlyCaches fails the measurement if anything but caches, which expire, is
// in Redis: nothing is kept for a push beyond the horizon.
func onlyCaches(ctx context.Context, rdb *redis.Client, l *lab) error {
	var caches, others int
	var longest time.Duration
	keys := rdb.Scan(ctx, 0, "*", 1000).Iterator()
	for keys.Next(ctx) {
		ttl, err := rdb.PTTL(ctx, keys.Val()).Result()
		if err != nil {
			return err
		}
		if ttl < 0 {
			others++
			continue
		}
		caches++
		longest = max(longest, ttl)
	}
	if err := keys.Err(); err != nil {
		return err
	}
	l.report.note("Memory: after %s single bookings beyond the horizon Redis holds %s caches, which expire in at most %s, and %d other keys (asynq's list of queues); no task.",
		count(float64(2*l.backlog+2000)), count(float64(caches)), longest.Round(time.Second), others)
	if others > 1 {
		l.report.fault("memory: %d keys in Redis never expire", others)
	}
	return nil
}

// memoryBeyond books pushes beyond the horizon by batch, with nothing else in
// Redis, and returns what there is of each then.
func (l *lab) memoryBeyond(ctx context.Context, s *sendquota, rdb *redis.Client) (bytes float64, keys int64, err error) {
	if err := rdb.FlushDB(ctx).Err(); err != nil {
		return 0, 0, err
	}
	if bytes, err = l.memoryOf(ctx, s.batches(farAhead()), batchSize); err != nil {
		return 0, 0, err
	}
	keys, err = rdb.DBSize(ctx).Result()
	return max(bytes, 0), keys, err
}

// memoryArmed books pushes within the horizon, lets a worker arm them, and
// returns the bytes per wake-up. Their time comes when all is over.
func (l *lab) memoryArmed(ctx context.Context, s *sendquota, rdb *redis.Client) (float64, error) {
	d := s.batches(time.Now().Add(80 * time.Second).UTC().Truncate(time.Second).Format(time.RFC3339))
	d.total = l.backlog / batchSize
	if _, err := l.drive(ctx, d); err != nil {
		return 0, err
	}
	before, err := l.quietMemory(ctx)
	if err != nil {
		return 0, err
	}
	worker, err := s.startWorker()
	if err != nil {
		return 0, err
	}
	err = eventually(ctx, func() (bool, error) {
		names, err := rdb.SMembers(ctx, "asynq:queues").Result()
		armed := int64(0)
		for _, name := range names {
			n, counted := rdb.ZCard(ctx, "asynq:{"+name+"}:scheduled").Result()
			armed, err = armed+n, errors.Join(err, counted)
		}
		return armed == int64(l.backlog), err
	})
	if err != nil {
		return 0, fmt.Errorf("arm: %w\n%s", err, worker.Said())
	}
	after, err := l.quietMemory(ctx)
	if err != nil {
		return 0, err
	}
	return float64(after-before) / float64(l.backlog), l.stop(worker)
}
