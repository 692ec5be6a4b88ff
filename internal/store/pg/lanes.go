package pg

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// ownSQL locks the rows of all lanes in order, so that one worker after another decides, and none of them in a circle.
// It is a single statement: a worker that freezes leaves no locks. It reads each row as its lock finds it. What no other
// worker owns becomes the worker's; so does one lane of the worker that owns most, if that has at least two more.
const ownSQL = `
	WITH seen AS MATERIALIZED (
		SELECT shard, owner, owned_until FROM lanes WHERE shard = ANY ($2::smallint[]) ORDER BY shard FOR UPDATE
	), others AS MATERIALIZED (
		SELECT shard, owner FROM seen WHERE owner <> $1 AND owned_until > clock_timestamp()
	), most AS (
		SELECT max(shard) AS shard FROM others GROUP BY owner
		HAVING count(*) >= (SELECT count(*) FROM seen) - (SELECT count(*) FROM others) + 2
		ORDER BY count(*) DESC, owner LIMIT 1
	)
	UPDATE lanes SET owner = $1, owned_until = clock_timestamp() + $3::interval
	WHERE shard IN (SELECT shard FROM seen EXCEPT SELECT shard FROM others UNION ALL SELECT shard FROM most)
	RETURNING shard`

// OwnLanes takes lanes for a worker until the lease ends, by Postgres' clock: those that it owns, those that nobody owns
// any more, and one of the worker that owns most, if that has at least two more. It returns what the worker owns now, in
// the order of lanes. Workers that call it again and again come to own equal parts.
//
// lanes are all lanes. Workers that divide the shards differently, while a setting is changed, own rows of the same
// table: together they look after each shard, and after some of them twice.
func (s *DB) OwnLanes(ctx context.Context, worker uuid.UUID, lanes []push.Lane, lease time.Duration) ([]push.Lane, error) {
	firsts := make([]int16, len(lanes))
	for i, l := range lanes {
		firsts[i] = int16(l.First)
	}
	var owned []int16
	err := s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows, _ := c.Query(ctx, ownSQL, worker, firsts, lease)
		var err error
		owned, err = pgx.CollectRows(rows, pgx.RowTo[int16])
		return err
	})
	if err != nil {
		return nil, err
	}
	failpoint.Hit(failpoint.LanesOwned)
	return slices.DeleteFunc(slices.Clone(lanes), func(l push.Lane) bool { return !slices.Contains(owned, int16(l.First)) }), nil
}

// LeaveLanes gives all lanes of a worker back, for a worker that stops.
func (s *DB) LeaveLanes(ctx context.Context, worker uuid.UUID) error {
	return s.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			WITH own AS MATERIALIZED (SELECT shard FROM lanes WHERE owner = $1 ORDER BY shard FOR UPDATE)
			UPDATE lanes SET owner = NULL, owned_until = '-infinity' WHERE shard IN (SELECT shard FROM own)`, worker)
		return err
	})
}

// ShardsIn lists the shards of lanes.
func ShardsIn(lanes []push.Lane) (shards []int64) {
	for _, l := range lanes {
		for s := l.First; s <= l.Last; s++ {
			shards = append(shards, int64(s))
		}
	}
	return shards
}

// ShardsOf lists the shards of recipients, each once.
func ShardsOf(recipientKeys ...int64) []int16 {
	shards := make([]int16, len(recipientKeys))
	for i, key := range recipientKeys {
		shards[i] = int16(push.Shard(key))
	}
	slices.Sort(shards)
	return slices.Compact(shards)
}

// RangesOf returns the first and the last shard of each range of the lanes' shards, as few as there can be.
func RangesOf(lanes []push.Lane) (firsts, lasts []int64) {
	shards := ShardsIn(lanes)
	slices.Sort(shards)
	for _, s := range slices.Compact(shards) {
		if n := len(lasts); n > 0 && lasts[n-1] == s-1 {
			lasts[n-1] = s
		} else {
			firsts, lasts = append(firsts, s), append(lasts, s)
		}
	}
	return firsts, lasts
}
