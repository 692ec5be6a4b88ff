package main

import (
	"math"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// life is the cost of a push in its life: from a single submit to the end of its only attempt.
type life struct {
	API, Worker, Postgres, Redis float64 // microseconds of processor time
	WAL, Images                  float64 // bytes of write-ahead log: records, and at most as many of the pages' images behind a checkpoint
	Heap, Indexes, Sends         float64 // bytes of disk: the table pushes, its indexes, and the table sends with its own
	Memory                       float64 // bytes of Redis for a booking, while the cache of its recipient is loaded
}

// measureLives submits and delivers pushes, in rounds, on a large system and on a small one.
func (l *lab) measureLives(large, small *sendquota, provider providerClient) (one life) {
	var speed pairs
	var used usage
	var bytes sizes
	pushes := float64(l.rounds * l.backlog)
	l.profiled("Deliver and record", large, func() {
		for n := range l.rounds + 1 {
			l.pageImages(n > 0)
			ours, theirs := l.live(large, provider), l.live(small, provider)
			// As autovacuum does in time: the next round uses the place again.
			small.exec("VACUUM pushes, live, sends")
			if n == 0 { // the first one warms up
				one.WAL, bytes = ours.wal/float64(l.backlog), small.sizes()
				continue
			}
			testenv.Say("  round %d: %s/s against %s/s", n, count(ours.perSecond), count(theirs.perSecond))
			speed.add(ours.perSecond, theirs.perSecond)
			used = used.plus(ours.cpu)
			one.Images += ours.wal / pushes
		}
		l.report.compare("Deliver and record", speed, "pushes/s", 0.9)
	})
	l.report.used("a push in its life", int(pushes), used)
	grown := small.sizes()
	one.Images = max(0, one.Images-one.WAL)
	one.Heap, one.Indexes, one.Sends = (grown.heap-bytes.heap)/pushes, (grown.indexes-bytes.indexes)/pushes, (grown.sends-bytes.sends)/pushes
	micros := func(kind string) float64 { return used[kind] * 1e6 / pushes }
	one.API, one.Worker, one.Postgres, one.Redis = micros("api"), micros("worker"), micros("postgres"), micros("redis")
	one.Memory = l.memoryOfBooking(small)
	return one
}

// lived is the result of one round.
type lived struct {
	perSecond float64 // delivered
	cpu       usage
	wal       float64 // bytes
}

// live submits pushes that are due at once, and then delivers them.
func (l *lab) live(s *sendquota, provider providerClient) lived {
	l.settle()
	before, wal := l.cpu(), l.wal()
	submits := s.submit("")
	submits.total = l.backlog
	l.drive(submits)
	worker := s.startWorker()
	l.eventually("all pushes are delivered and recorded", func() bool {
		open := true
		if provider.count() >= l.backlog {
			s.query("SELECT EXISTS (SELECT FROM live WHERE channel = 'push' AND token IS NOT NULL)", nil, &open)
		}
		return !open
	})
	one := lived{cpu: l.cpu().since(before), wal: l.wal() - wal}
	s.stopWorker(worker)
	arrivals := provider.take()
	l.check(once(arrivals, l.backlog))
	first, last := arrivals[0].at, arrivals[0].at
	for _, a := range arrivals {
		first, last = time.Unix(0, min(first.UnixNano(), a.at.UnixNano())), time.Unix(0, max(last.UnixNano(), a.at.UnixNano()))
	}
	one.perSecond = float64(l.backlog) / last.Sub(first).Seconds()
	return one
}

// wal returns how many bytes of write-ahead log the server has written.
func (l *lab) wal() (bytes float64) {
	l.check(l.postgres.QueryRow(l.Context(), "SELECT pg_current_wal_insert_lsn() - '0/0'").Scan(&bytes))
	return bytes
}

// pageImages switches full_page_writes: whether the server logs the image of a page at the page's first change after a
// checkpoint, as by default.
func (l *lab) pageImages(on bool) {
	setting := "ALTER SYSTEM RESET full_page_writes"
	if !on {
		setting = "ALTER SYSTEM SET full_page_writes = off"
	}
	for _, sql := range []string{setting, "SELECT pg_reload_conf()"} {
		_, err := l.postgres.Exec(l.Context(), sql)
		l.check(err)
	}
}

// sizes holds sizes of tables, in bytes.
type sizes struct{ heap, indexes, sends float64 }

func (s *sendquota) sizes() (now sizes) {
	s.query("SELECT sum(pg_table_size(p.relid)), sum(pg_indexes_size(p.relid)), (SELECT sum(pg_total_relation_size(s.relid)) FROM pg_partition_tree('sends') s) FROM pg_partition_tree('pushes') p", nil, &now.heap, &now.indexes, &now.sends)
	return now
}

// memoryOfBooking returns Redis' memory for the second push of a recipient: the first one takes none.
func (l *lab) memoryOfBooking(s *sendquota) float64 {
	first := l.recipients.Load()
	firsts := s.submit(farAhead())
	firsts.total = l.backlog + 1000
	l.drive(firsts)
	seconds := s.submit(inUTC(49 * time.Hour))
	seconds.next = around(first, l.recipients.Load())
	seconds.total = 1000
	l.drive(seconds) // opens connections
	before := l.quietMemory()
	seconds.total = l.backlog
	l.drive(seconds)
	return math.Max(0, float64(l.quietMemory()-before)/float64(l.backlog))
}

// quietMemory returns the memory once it has stopped changing: Redis frees the buffers of connections only after some
// time.
func (l *lab) quietMemory() (bytes int64) {
	l.eventually("the memory of Redis stops changing", func() bool {
		before := bytes
		bytes = l.redisMemory()
		return max(bytes-before, before-bytes) < 2000
	})
	return bytes
}
