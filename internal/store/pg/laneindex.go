package pg

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// The index live_lane is on (channel, phase, next_at, shard, rest of the recipient key). A statement uses it if it names a
// channel and a phase, preferably one of Ranks. Compare with statement_timestamp(): clock_timestamp() is volatile, so
// Postgres would read every row.

// A statement that joins live with another table compares l.recipient_key = ANY (ARRAY[n.recipient_key]). A plain
// comparison means the same, but allows Postgres to read all of live in the order of its primary key. It does so if its
// statistics date from an hour in which no push waited.

// Ranks is a table expression of the phases of a waiting push: see [push.Rank].
const Ranks = `(VALUES (0::smallint), (1::smallint), (2::smallint), (3::smallint), (4::smallint), (5::smallint)) AS k (phase)`

// UnderWay is the phase of a push with an attempt under way.
const UnderWay = `6::smallint`

// ChannelsSQL begins a statement with the table channels (name), the channels of pushes that have not ended. It finds
// each channel with one search, from its last push backwards, because ended pushes leave dead entries at the beginning
// of the index. {shard} stands for a condition: see [InShard].
const ChannelsSQL = `
	WITH RECURSIVE walk (name) AS (
		(SELECT channel FROM live WHERE {shard} true ORDER BY channel DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT channel FROM live WHERE {shard} channel < walk.name ORDER BY channel DESC LIMIT 1)
		FROM walk WHERE name IS NOT NULL
	), channels (name) AS (SELECT name FROM walk WHERE name IS NOT NULL)`

// Configured is the condition that a channel c can send; $1 must be [Config.Channels].
const Configured = `($1::text[] IS NULL OR c.name = ANY ($1))`

// InShard replaces {shard} in a statement about lanes. If lanes is a single shard, the condition compares with the
// expression shard. Otherwise it is empty: the index alone finds the shards, because it holds the expression
// recipient_key & 255.
func InShard(sql, shard string, lanes ...push.Lane) string {
	if len(lanes) == 1 && lanes[0].First == lanes[0].Last {
		return strings.ReplaceAll(sql, "{shard}", "shard = ("+shard+")::smallint AND")
	}
	return InAllShards(sql)
}

// InAllShards removes {shard} from a statement, which then reads all shards.
func InAllShards(sql string) string { return strings.ReplaceAll(sql, "{shard}", "") }

// ShardArg returns the argument that the expression of [InShard] needs, or none if lanes are several shards.
func ShardArg(lanes []push.Lane) []any {
	if len(lanes) == 1 && lanes[0].First == lanes[0].Last {
		return []any{lanes[0].First}
	}
	return nil
}
