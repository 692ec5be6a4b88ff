package pg

import (
	"cmp"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// lockSQL waits for the locks named by sorted keys, until the transaction ends. tryLockSQL takes those that are free.
// Both return the keys of locks that were not taken.
const (
	lockSQL    = `SELECT k FROM unnest($1::bigint[]) AS k WHERE pg_advisory_xact_lock(k) IS NULL`
	tryLockSQL = `SELECT k FROM unnest($1::bigint[]) AS k WHERE NOT pg_try_advisory_xact_lock(k)`
)

// The same for keys of one shard, by the server that has the shard's row in lanes: an advisory lock is one server's.
const (
	shardLockSQL    = `SELECT k FROM lanes CROSS JOIN unnest($1::bigint[]) AS k WHERE shard = $2 AND pg_advisory_xact_lock(k) IS NULL`
	shardTryLockSQL = `SELECT k FROM lanes CROSS JOIN unnest($1::bigint[]) AS k WHERE shard = $2 AND NOT pg_try_advisory_xact_lock(k)`
)

// Locking is how a transaction takes the locks of recipients and of requests. All do so in the same order, so that none wait
// for each other in a circle.
type Locking struct {
	try     bool // leave those that others have
	byShard bool // the shards may be on different servers
}

// Locking waits for locks, or, if the run can be sure that it is the first one, tries to take them.
func (s *DB) Locking(try bool) Locking { return Locking{try: try, byShard: s.ByShard()} }

// Queue asks for the locks. Each result has the keys of those that were not taken.
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

// chunksBy divides a list where a property of its items changes.
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
