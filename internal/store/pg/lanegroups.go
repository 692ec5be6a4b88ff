package pg

import (
	"iter"
	"regexp"
	"sync"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
)

// LaneGroups gathers requests about one recipient each, by lane: a transaction touches the shards of one lane.
type LaneGroups[Req, Res any] struct {
	key  func(Req) int64 // of the recipient
	each []*groupcommit.Group[Req, Res]
}

// NewLaneGroups makes as many groups like this one as there are lanes.
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

// LaneOf is the number of a recipient's lane of so many.
func LaneOf(recipientKey int64, lanes int) int { return push.Shard(recipientKey) * lanes / push.Shards }

// ByShard reports whether each shard is a lane: then the shards may be on different servers.
func (s *DB) ByShard() bool { return s.Cfg.Lanes == push.Shards }

// InTurn divides lanes into those that one transaction may touch.
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

// ByLane divides requests by lane: their indexes, in the order of lanes.
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

// shardCondition is one on the shards of the rows that a statement joins.
var shardCondition = regexp.MustCompile(`(?:\w\.)?shard = ANY \((\$\d+)::smallint\[\]\)`)

// Joining has a statement that joins rows with those of pushes, live or sends say their shards only where each shard is a lane.
// Elsewhere the condition is true of all rows, and Postgres, which expects it to be true of few, would begin with these: it reads
// a whole table whose plan was made while it was small. Its tables are named afterwards: so there are few such statements.
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

// joiningAll are the statements that joining has made.
var joiningAll sync.Map
