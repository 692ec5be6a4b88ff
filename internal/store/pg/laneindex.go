package pg

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// The index live_lane is (channel, phase, next_at, shard, rest of the recipient key). A statement finds what it needs
// there if it names a channel and a phase, best one of kinds. It compares with statement_timestamp(), because
// clock_timestamp() is volatile: every row would be looked at.

// A statement that joins live with something else says l.recipient_key = ANY (ARRAY[n.recipient_key]). A plain comparison
// means the same, but lets Postgres read all of live in the order of its primary key: it does so when its statistics are
// from an hour in which nothing waited.

// Kinds are the phases of a push that waits: the second one is bulk.
const Kinds = `(VALUES (0::smallint), (1::smallint)) AS k (phase)`

// ChannelsSQL begins a statement with the table channels (name): those of pushes that have not ended. It finds each with
// one search, from its last push back: the first entries of an index are the ones that ended pushes leave behind. {shard}
// stands for a condition: see [InShard].
const ChannelsSQL = `
	WITH RECURSIVE walk (name) AS (
		(SELECT channel FROM live WHERE {shard} true ORDER BY channel DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT channel FROM live WHERE {shard} channel < walk.name ORDER BY channel DESC LIMIT 1)
		FROM walk WHERE name IS NOT NULL
	), channels (name) AS (SELECT name FROM walk WHERE name IS NOT NULL)`

// Configured is the condition on a channel c that it can be sent through, if [Config.Channels] is the first argument.
const Configured = `($1::text[] IS NULL OR c.name = ANY ($1))`

// InShard writes down the shard where {shard} stands in a statement about lanes, if they are one shard: an expression of it. Several
// are found by the index alone, which has what the expression recipient_key & 255 makes of the key.
func InShard(sql, shard string, lanes ...push.Lane) string {
	if len(lanes) == 1 && lanes[0].First == lanes[0].Last {
		return strings.ReplaceAll(sql, "{shard}", "shard = ("+shard+")::smallint AND")
	}
	return InAllShards(sql)
}

// InAllShards has a statement look through all of them.
func InAllShards(sql string) string { return strings.ReplaceAll(sql, "{shard}", "") }

// ShardArg is the argument that [InShard] needs for lanes.
func ShardArg(lanes []push.Lane) []any {
	if len(lanes) == 1 && lanes[0].First == lanes[0].Last {
		return []any{lanes[0].First}
	}
	return nil
}
