package pushes

import "github.com/sendquota/sendquota/internal/push"

// Ending describes a statement that ends waiting pushes without an attempt under way. Like every change of a push, it
// takes the rows out of live first, so each push goes either to a claim or to the ending. The statement frees the pushes'
// bookings and writes the webhook events. A push with an attempt under way is ended by a finish, which must have the
// attempt's token: see the finish in package attempts.
type Ending struct {
	Before  string // common table expressions to put first, each followed by a comma
	Rows    string // selects rows l of live; begins with USING or WHERE
	Shards  string // the parameter with the rows' shards
	Status  push.Status
	Reason  string // an expression of p and taken for last_error; empty keeps the last error
	after   string // common table expressions that may read ended, each preceded by a comma
	Columns string // columns of ended to return; empty returns nothing
}

// SQL returns the statement, with {pushes} for the table.
func (e Ending) SQL() string {
	set, end := ``, e.after+`{events}`+RenewCrowdsSQL+`(SELECT recipient_key FROM ended)`
	if e.Reason != "" {
		set = `, last_error = ` + e.Reason
	}
	if e.Columns != "" {
		end = `, fewer AS (` + RenewCrowdsSQL + `(SELECT recipient_key FROM ended))` + e.after + `{events}
	SELECT ` + e.Columns + ` FROM ended`
	}
	return WithEvents(`
	WITH `+e.Before+`taken AS (
		DELETE FROM live l `+e.Rows+` AND l.token IS NULL RETURNING l.push_id, l.own_channel
	), ended AS (
		UPDATE {pushes} p SET status = '`+string(e.Status)+`', freed = true, plan = p.plan + 1, updated_at = statement_timestamp()`+set+`
		FROM taken WHERE p.shard = ANY (`+e.Shards+`::smallint[]) AND p.id = taken.push_id
		RETURNING p.id, p.tenant_id, p.recipient, p.channel, p.category, p.request_id, p.recipient_key{whole}
	)`+end, `ended`, StatusEvent(e.Status))
}

// EndedSQL lists the columns that identify an ended push, in the order of attempts.CollectEnded.
const EndedSQL = `id, tenant_id, recipient, channel, category, request_id`

// LockedRows selects rows of live that the transaction has locked, for [Ending].
const LockedRows = `USING unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
	WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id`
