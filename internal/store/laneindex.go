package store

// isScheduled is the condition of the index pushes_lane: (channel, bulk, next_at, shard, recipient_key). A statement
// finds its pushes there, and never elsewhere, if it repeats the condition, and names a channel and one of kinds. It
// compares with statement_timestamp(), because clock_timestamp() is volatile: every row would be looked at.
const isScheduled = `status || '.' = 'scheduled.'`

// kinds are both values of pushes.bulk.
const kinds = `(VALUES (false), (true)) AS k (bulk)`

// channelsSQL begins a statement with the table channels (name): those that have scheduled pushes. It finds each with one
// search, from its last push back: the first entries of an index are the ones that ended pushes leave behind.
const channelsSQL = `
	WITH RECURSIVE walk (name) AS (
		(SELECT channel FROM pushes WHERE ` + isScheduled + ` ORDER BY channel DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT channel FROM pushes WHERE ` + isScheduled + ` AND channel < walk.name ORDER BY channel DESC LIMIT 1)
		FROM walk WHERE name IS NOT NULL
	), channels (name) AS (SELECT name FROM walk WHERE name IS NOT NULL)`

// configured is the condition on a channel c that it can be sent through, if [Config.Channels] is the first argument.
const configured = `($1::text[] IS NULL OR c.name = ANY ($1))`
