package pushes

import "github.com/sendquota/sendquota/internal/push"

// Ending is a statement that ends pushes which wait, and have no attempt under way. It takes their rows out of live first, as all do
// that change a push: so a claim has one, or the ending. It frees their places, and tells the webhooks. What a finish ends has an
// attempt under way, whose token it must have: see finish.go.
type Ending struct {
	Before  string // common table expressions in front, each with a comma behind it
	Rows    string // from USING or WHERE on: which rows of live, l
	Shards  string // the parameter with their shards
	Status  push.Status
	Reason  string // an expression; empty: the last error stays
	after   string // common table expressions behind, each with a comma before it, that may read ended
	Columns string // of ended, to be returned; empty: nothing is
}

func (e Ending) Sql() string {
	set, end := ``, e.after+`{told}`+FewerSQL+`(SELECT recipient_key FROM ended)`
	if e.Reason != "" {
		set = `, last_error = ` + e.Reason
	}
	if e.Columns != "" {
		end = `, fewer AS (` + FewerSQL + `(SELECT recipient_key FROM ended))` + e.after + `{told}
	SELECT ` + e.Columns + ` FROM ended`
	}
	return Tells(`
	WITH `+e.Before+`taken AS (
		DELETE FROM live l `+e.Rows+` AND l.token IS NULL RETURNING l.push_id
	), ended AS (
		UPDATE {pushes} p SET status = '`+string(e.Status)+`', freed = true, plan = p.plan + 1, updated_at = statement_timestamp()`+set+`
		FROM taken WHERE p.shard = ANY (`+e.Shards+`::smallint[]) AND p.id = taken.push_id
		RETURNING p.id, p.tenant_id, p.recipient, p.channel, p.category, p.request_id, p.recipient_key{whole}
	)`+end, `ended`, Becomes(e.Status))
}

// EndedSQL are the columns that collectEnded reads.
const EndedSQL = `id, tenant_id, recipient, channel, category, request_id`

// LockedRows are rows of live that this transaction has locked.
const LockedRows = `USING unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
	WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id`
