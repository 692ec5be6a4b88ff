package main

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/testenv"
)

// measureMemory divides the memory of Redis by the number of bookings and of pushes that are armed.
func measureMemory(l *lab) {
	s, n := l.newSendquota(nowhere), l.newNaive()
	rdb := testenv.RedisClient(l, s.redis)
	naiveBytes := l.memoryOf(n.submit(farAhead()), 1)
	first := l.recipients.Load()
	booking := l.memoryOf(s.submit(farAhead()), 1)
	further := s.submit(inUTC(49 * time.Hour))
	further.next = around(first, l.recipients.Load())
	next := l.memoryOf(further, 1)
	l.onlyCaches(rdb)
	beyond, keys := l.memoryBeyond(s, rdb)
	armed := l.memoryArmed(s, rdb)
	add := func(name, ours, theirs, wanted, ok string) {
		l.report.add(row{measurement: l.report.measuring, Name: name, Ours: ours, Theirs: theirs, Wanted: wanted, OK: ok})
	}
	add("Redis memory per booking, while its recipient's cache is loaded (10 minutes)",
		fmt.Sprintf("first of a recipient %s B, further %s B, then 0", count(booking), count(next)),
		fmt.Sprintf("%s B, ZSET and task, until it is sent", count(naiveBytes)), "—", "—")
	add("Redis memory per push scheduled beyond the horizon, by batch", fmt.Sprintf("%s, %d keys", inBytes(beyond), keys), inBytes(naiveBytes), "none", yes(keys == 0 && beyond < noise))
	add("Redis memory per push that is due within 90 s", inBytes(armed), "—", "—", "—")
}

// noise is how many bytes per push Redis' own bookkeeping may come to.
const noise = 16

func inBytes(n float64) string { return count(n) + " B" }

// memoryOf runs a load over as many pushes as a backlog has and returns the
// bytes per push that it left in Redis. A short load before opens connections.
func (l *lab) memoryOf(d load, pushes int) float64 {
	d.total = max(1, 1000/pushes)
	l.drive(d)
	before := l.quietMemory()
	d.total = l.backlog / pushes
	l.drive(d)
	return float64(l.quietMemory()-before) / float64(l.backlog)
}

// quietMemory asks for the memory when it has stopped changing: Redis frees
// what connections have buffered only after some time.
func (l *lab) quietMemory() (bytes int64) {
	l.eventually("the memory of Redis stops changing", func() bool {
		before := bytes
		bytes = l.redisMemory()
		return max(bytes-before, before-bytes) < 2000
	})
	return bytes
}

// onlyCaches reports a fault if anything but caches, which expire, is in Redis:
// nothing is kept for a push beyond the horizon.
func (l *lab) onlyCaches(rdb *redis.Client) {
	var caches, others int
	var longest time.Duration
	keys := rdb.Scan(l.Context(), 0, "*", 1000).Iterator()
	for keys.Next(l.Context()) {
		ttl, err := rdb.PTTL(l.Context(), keys.Val()).Result()
		l.check(err)
		if ttl < 0 {
			others++
			continue
		}
		caches++
		longest = max(longest, ttl)
	}
	l.check(keys.Err())
	l.report.note("Memory: after %s single bookings beyond the horizon Redis holds %s caches, which expire in at most %s, and %d other keys (asynq's list of queues); no task.",
		count(float64(2*l.backlog+2000)), count(float64(caches)), longest.Round(time.Second), others)
	if others > 1 {
		l.report.fault("memory: %d keys in Redis never expire", others)
	}
}

// memoryBeyond books pushes beyond the horizon by batch, with nothing else in
// Redis, and returns what there is of each then.
func (l *lab) memoryBeyond(s *sendquota, rdb *redis.Client) (bytes float64, keys int64) {
	l.check(rdb.FlushDB(l.Context()).Err())
	bytes = l.memoryOf(s.batches(farAhead()), batchSize)
	keys, err := rdb.DBSize(l.Context()).Result()
	l.check(err)
	return max(bytes, 0), keys
}

// memoryArmed books pushes within the horizon, lets a worker arm their lanes,
// and returns the bytes per push. Their time comes when all is over.
func (l *lab) memoryArmed(s *sendquota, rdb *redis.Client) float64 {
	before := l.quietMemory()
	d := s.batches(inUTC(80 * time.Second))
	d.total = l.backlog / batchSize
	l.drive(d)
	worker := s.startWorker()
	l.eventually("the worker arms all lanes", func() bool { return l.armed(rdb) >= l.backlog/256 })
	after := l.quietMemory()
	l.stop(worker)
	return float64(after-before) / float64(l.backlog)
}

// armed counts the wake-ups that wait for their time.
func (l *lab) armed(rdb *redis.Client) (tasks int) {
	names, err := rdb.SMembers(l.Context(), "asynq:queues").Result()
	l.check(err)
	for _, name := range names {
		n, err := rdb.ZCard(l.Context(), "asynq:{"+name+"}:scheduled").Result()
		l.check(err)
		tasks += int(n)
	}
	return tasks
}
