package store

// The index live_lane is (channel, phase, next_at, shard, rest of the recipient key). A statement finds what it needs
// there if it names a channel and a phase, best one of kinds. It compares with statement_timestamp(), because
// clock_timestamp() is volatile: every row would be looked at.

// A statement that joins live with something else says l.recipient_key = ANY (ARRAY[n.recipient_key]). A plain comparison
// means the same, but lets Postgres read all of live in the order of its primary key: it does so when its statistics are
// from an hour in which nothing waited.

// kinds are the phases of a push that waits: the second one is bulk.
const kinds = `(VALUES (0::smallint), (1::smallint)) AS k (phase)`

// channelsSQL begins a statement with the table channels (name): those of pushes that have not ended. It finds each with
// one search, from its last push back: the first entries of an index are the ones that ended pushes leave behind.
const channelsSQL = `
	WITH RECURSIVE walk (name) AS (
		(SELECT channel FROM live ORDER BY channel DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT channel FROM live WHERE channel < walk.name ORDER BY channel DESC LIMIT 1)
		FROM walk WHERE name IS NOT NULL
	), channels (name) AS (SELECT name FROM walk WHERE name IS NOT NULL)`

// configured is the condition on a channel c that it can be sent through, if [Config.Channels] is the first argument.
const configured = `($1::text[] IS NULL OR c.name = ANY ($1))`
