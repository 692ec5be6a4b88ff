package pg

import (
	"context"
	"iter"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
)

// ownSQL assigns lanes to a worker. It locks the rows of all lanes in order, so that workers decide one after another
// without deadlocks, and reads each row after locking it. It is a single statement, so that a frozen worker leaves no
// locks. The worker gets all lanes without another owner, and one lane of the worker that owns most, if that worker
// has at least two more.
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

// OwnLanes leases lanes to a worker, by the clock of Postgres: the lanes that it owns, lanes without an owner, and one
// lane of the worker that owns most, if that worker has at least two more. It returns the lanes that the worker owns
// now, in the order of lanes. Workers that call it repeatedly come to own equal parts.
//
// lanes are all lanes. While a setting is changed, workers may divide the shards differently, yet they own rows of the
// same table. Together they serve every shard, and some shards twice.
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

// LeaveLanes releases all lanes of a worker that stops.
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

// ShardsOf lists the shards of recipients in ascending order, without duplicates.
func ShardsOf(recipientKeys ...int64) []int16 {
	shards := make([]int16, len(recipientKeys))
	for i, key := range recipientKeys {
		shards[i] = int16(push.Shard(key))
	}
	slices.Sort(shards)
	return slices.Compact(shards)
}

// RangesOf returns the first and the last shard of each contiguous range of the lanes' shards, in as few ranges as
// possible.
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

// LaneGroups groups concurrent requests by the lane of their recipient, because a transaction touches the shards of
// one lane only. Each request concerns one recipient.
type LaneGroups[Req, Res any] struct {
	key  func(Req) int64 // of the recipient
	each []*groupcommit.Group[Req, Res]
}

// NewLaneGroups calls like once for each lane, to create its group.
func NewLaneGroups[Req, Res any](lanes int, key func(Req) int64, like func() *groupcommit.Group[Req, Res]) LaneGroups[Req, Res] {
	g := LaneGroups[Req, Res]{key: key}
	for range lanes {
		g.each = append(g.each, like())
	}
	return g
}

// Do runs a request together with others of its lane.
func (g LaneGroups[Req, Res]) Do(req Req) (Res, error) {
	return g.each[LaneOf(g.key(req), len(g.each))].Do(req)
}

// LaneOf returns the number of a recipient's lane, from 0 to lanes-1.
func LaneOf(recipientKey int64, lanes int) int { return push.Shard(recipientKey) * lanes / push.Shards }

// ByShard reports whether each shard is a lane of its own. Then the shards may be on different servers.
func (s *DB) ByShard() bool { return s.Cfg.Lanes == push.Shards }

// InTurn divides lanes into groups. A transaction may touch one group.
func (s *DB) InTurn(lanes []push.Lane) iter.Seq[[]push.Lane] {
	return func(yield func([]push.Lane) bool) {
		if !s.ByShard() {
			_ = len(lanes) == 0 || yield(lanes)
			return
		}
		for _, shard := range ShardsIn(lanes) {
			if !yield([]push.Lane{{First: int(shard), Last: int(shard)}}) {
				return
			}
		}
	}
}

// ByLane groups requests by lane and yields the indexes of each group, in the order of lanes.
func ByLane[Req any](reqs []Req, lanes int, key func(Req) int64) iter.Seq[[]int] {
	parts := make([][]int, lanes)
	for i, req := range reqs {
		lane := LaneOf(key(req), lanes)
		parts[lane] = append(parts[lane], i)
	}
	return func(yield func([]int) bool) {
		for _, part := range parts {
			if len(part) > 0 && !yield(part) {
				return
			}
		}
	}
}

// shardCondition matches the condition on the shards of joined rows.
var shardCondition = regexp.MustCompile(`(?:\w\.)?shard = ANY \((\$\d+)::smallint\[\]\)`)

// Joining removes the shard condition from a statement that joins rows with pushes, live or sends, unless every shard
// is a lane of its own. With fewer lanes the condition is true for all rows. Postgres expects it to be true for few,
// and would scan a table whose plan dates from when it was small. Joining caches its results without bound. So pass it
// statements before the partitions are named in them.
func (s *DB) Joining(sql string) string {
	if s.ByShard() {
		return sql
	}
	if known, ok := joiningAll.Load(sql); ok {
		return known.(string)
	}
	all := shardCondition.ReplaceAllString(sql, "$1::smallint[] IS NOT NULL")
	joiningAll.Store(sql, all)
	return all
}

// joiningAll caches the results of [DB.Joining].
var joiningAll sync.Map
