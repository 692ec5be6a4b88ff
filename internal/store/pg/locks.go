package pg

import (
	"cmp"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// lockSQL takes transaction locks on sorted keys and waits for each. tryLockSQL takes only the free ones. Both return the
// keys of the locks that they did not take.
const (
	lockSQL    = `SELECT k FROM unnest($1::bigint[]) AS k WHERE pg_advisory_xact_lock(k) IS NULL`
	tryLockSQL = `SELECT k FROM unnest($1::bigint[]) AS k WHERE NOT pg_try_advisory_xact_lock(k)`
)

// shardLockSQL and shardTryLockSQL do the same for keys of one shard. They read the shard's row in lanes, so that the
// server with the shard takes the advisory locks.
const (
	shardLockSQL    = `SELECT k FROM lanes CROSS JOIN unnest($1::bigint[]) AS k WHERE shard = $2 AND pg_advisory_xact_lock(k) IS NULL`
	shardTryLockSQL = `SELECT k FROM lanes CROSS JOIN unnest($1::bigint[]) AS k WHERE shard = $2 AND NOT pg_try_advisory_xact_lock(k)`
)

// Locking takes the locks of recipients and of requests for a transaction. All transactions take them in the same
// order, to avoid deadlocks.
type Locking struct {
	try     bool // skip locks that other transactions hold
	byShard bool // the shards may be on different servers
}

// Locking returns a Locking that waits for locks, or that skips locks which are not free if try is true. try is safe
// only in a run that cannot have been committed before.
func (s *DB) Locking(try bool) Locking { return Locking{try: try, byShard: s.ByShard()} }

// Queue adds statements that take the locks of keys to a batch. The rows of each result are the keys whose locks were
// not taken.
func (l Locking) Queue(b *pgx.Batch, keys []int64) (asked []*pgx.QueuedQuery) {
	if !l.byShard {
		sql := lockSQL
		if l.try {
			sql = tryLockSQL
		}
		return append(asked, b.Queue(sql, keys))
	}
	sql := shardLockSQL
	if l.try {
		sql = shardTryLockSQL
	}
	keys = slices.SortedFunc(slices.Values(keys), func(a, b int64) int { return cmp.Or(cmp.Compare(push.Shard(a), push.Shard(b)), cmp.Compare(a, b)) })
	for part := range chunksBy(keys, push.Shard) {
		asked = append(asked, b.Queue(sql, part, push.Shard(part[0])))
	}
	return asked
}

// chunksBy splits a list wherever of changes from one item to the next.
func chunksBy[T any, P comparable](list []T, of func(T) P) iter.Seq[[]T] {
	return func(yield func([]T) bool) {
		for len(list) > 0 {
			n := 1
			for n < len(list) && of(list[n]) == of(list[0]) {
				n++
			}
			if !yield(list[:n:n]) {
				return
			}
			list = list[n:]
		}
	}
}
