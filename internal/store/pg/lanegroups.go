package pg

import (
	"iter"
	"regexp"
	"sync"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
)

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
