package audit

import (
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/suppression"
)

// allForgotten selects the rows in live of pushes that have been due for longer than the grace period, by the index
// live_lane.
var allForgotten = `(
			` + pg.InAllShards(pg.ChannelsSQL) + `
			SELECT l.* FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN LATERAL (
				SELECT * FROM live WHERE channel = c.name AND phase = k.phase AND next_at < now() - @grace::interval OFFSET 0
			) l
		)`

// waitingQuery finds overdue pushes. A push that waits for another attempt of its recipient is not overdue. Nor is one that waits for a
// channel of its tenant, which may be slow or disabled, until it expires.
var waitingQuery = auditQuery{
	who:  `p.tenant_id, p.recipient, p.id`,
	at:   `p.send_at`,
	from: `(SELECT * FROM near_live WHERE ` + overdue + ` AND @latest::bool) l JOIN known p ON p.id = l.push_id`,
	where: `(l.own_channel IS NULL OR l.expires_at < now() - @grace::interval) AND NOT EXISTS (
		SELECT FROM near_live o WHERE o.recipient_key = l.recipient_key AND o.phase = ` + pg.UnderWay + ` AND o.next_at - now() > - @grace::interval)`,
	checks: []auditCheck{{"overdue", `true`, `format('due since %s, expires at %s, and still scheduled', l.next_at, l.expires_at)`}},
}

// wantedKey computes the same key as push.RecipientKey. keyBytes is its bytes, which compare in a third of the time.
const (
	keyBytes  = `substr(sha256(uuid_send(p.tenant_id) || convert_to(p.recipient, 'UTF8')), 1, 8)`
	wantedKey = `('x' || encode(` + keyBytes + `, 'hex'))::bit(64)::bigint`
)

// checkedPushes selects the pushes that a chunk checks.
const checkedPushes = `(SELECT * FROM own WHERE checked UNION ALL TABLE touched)`

// pushQuery checks each push by itself.
var pushQuery = auditQuery{
	who:   `p.tenant_id, p.recipient, p.id`,
	at:    `p.send_at`,
	from:  checkedPushes + ` p LEFT JOIN own_tenants t ON t.id = p.tenant_id ` + itsChunk,
	where: `true`,
	checks: []auditCheck{
		{"not-live", `(p.status = 'scheduled') <> (l.push_id IS NOT NULL) OR (l.plan, l.expires_at, l.tenant_id, coalesce(l.own_channel, l.channel)) <> (p.plan, p.expires_at, p.tenant_id, p.channel)
			OR l.token IS NULL AND l.next_at <> p.next_at AND NOT (coalesce(l.pause_id, l.campaign_id) IS NOT NULL AND l.next_at = 'infinity')`,
			`format('it is %s, to be tried at %s (plan %s), and in the table live: %s, to be tried at %s (plan %s)', p.status, p.next_at, p.plan, l.push_id IS NOT NULL, l.next_at, l.plan)`},
		{"overdue", `p.status = 'scheduled' AND l.token IS NULL AND p.expires_at < now() - @grace::interval AND p.next_at >= now() - @grace::interval`,
			`format('it expired at %s, and is to be tried at %s', p.expires_at, p.next_at)`},
		{"early", `p.status = 'scheduled' AND l.token IS NULL AND p.next_at < p.send_at`,
			`format('it is to be tried at %s, before its send time, %s', p.next_at, p.send_at)`},
		{"expired-early", `p.status = 'expired' AND p.updated_at < p.expires_at`,
			`format('it expired at %s, before its expiry, %s', p.updated_at, p.expires_at)`},
		{"no-reason", `p.status IN ('failed', 'expired') AND p.last_error = ''`,
			`format('it is %s, and its record gives no reason', p.status)`},
		{"times", `p.updated_at < p.created_at OR NOT (isfinite(p.send_at) AND isfinite(p.next_at) AND isfinite(p.expires_at))`,
			`format('requested_send_at %s, send_at %s, next_at %s, expires_at %s, created_at %s, updated_at %s', p.requested_send_at, p.send_at, p.next_at, p.expires_at, p.created_at, p.updated_at)`},
		{"unknown-tenant", `t.id IS NULL`, `'there is no such tenant'`},
		{"recipient-key", `p.recipient <> '' AND int8send(p.recipient_key) <> ` + keyBytes,
			`format('its recipient_key is %s, and the key of its recipient is %s', p.recipient_key, ` + wantedKey + `)`},
	},
}

// recordQuery compares the record of each push with all of its attempts. No attempt has a number above the push's
// count (see attemptQuery), so if there are as many attempts as the count, their numbers have no gaps. Attempts that
// began longer ago than attempts are kept may be gone: the first ones of a push that was made before that time, and
// all attempts of a push that ended before it.
var recordQuery = auditQuery{
	who: `tenant_id, recipient, id`,
	at:  `send_at`,
	from: `(
		SELECT *, made AND rows < attempts AND CASE WHEN rows = 0 THEN ended ELSE first = attempts - rows + 1 END AS gone
		FROM (
			SELECT p.id, p.tenant_id, p.recipient, p.send_at, p.status, p.attempts, p.possibly_delivered, p.last_error = '` + suppression.Failed + `' AS suppressed,
				coalesce(s.rows, 0) AS rows, s.first, coalesce(s.delivered, false) AS delivered, coalesce(s.unknown, false) AS unknown,
				p.created_at < now() - @keep_sends::interval AS made,
				p.status = 'scheduled' OR p.updated_at < now() - @keep_sends::interval + interval '1 day' AS ended
			FROM ` + checkedPushes + ` p LEFT JOIN (
				SELECT push_id, count(*) AS rows, min(attempt) AS first,
					bool_or(outcome = 'delivered') IS TRUE AS delivered, bool_or(outcome = 'unknown') IS TRUE AS unknown
				FROM (TABLE recorded UNION ALL TABLE elsewhere) s GROUP BY push_id
			) s ON s.push_id = p.id
		) p
	) p`,
	where: `true`,
	checks: []auditCheck{
		{"attempts", `rows <> attempts AND NOT gone`, `format('it counts %s attempts, and %s are recorded', attempts, rows)`},
		{"outcome", `(status = 'sent' AND NOT delivered OR status = 'failed' AND rows = 0 AND NOT suppressed) AND NOT (gone AND ended)`,
			`format('it is %s, and none of its %s attempts had that outcome', status, rows)`},
		{"possibly-delivered", `possibly_delivered AND NOT unknown AND NOT delivered AND NOT gone OR NOT possibly_delivered AND (unknown OR delivered AND status IN ('failed', 'canceled', 'expired'))`,
			`format('it is %s, possibly_delivered is %s; an attempt of it was delivered: %s, is unknown: %s', status, possibly_delivered, delivered, unknown)`},
	},
}

// requestQuery compares pushes that have an Idempotency-Key with the records of the key, and consecutive records of
// one key with each other. Within 30 days a key makes each push once, for one tenant, from one request.
var requestQuery = auditQuery{
	who: `tenant_id, recipient, id`,
	at:  `send_at`,
	from: `(
		SELECT p.*, k.push_id IS NOT NULL AS known, (k.idempotency_id, k.tenant_id, k.hash) IS DISTINCT FROM (p.idempotency_id, p.tenant_id, p.idempotency_hash) AS other,
			lag(k.created_at) OVER one_key > k.created_at - interval '30 days'
				AND (k.tenant_id, k.hash) IS DISTINCT FROM (lag(k.tenant_id) OVER one_key, lag(k.hash) OVER one_key) AS differs,
			lag(k.created_at) OVER one_member > k.created_at - interval '30 days' AS again
		FROM keyed k FULL JOIN requests p ON p.id = k.push_id
		WINDOW one_key AS (PARTITION BY k.idempotency_id ORDER BY k.created_at, k.push_id),
			one_member AS (PARTITION BY k.idempotency_id, k.member ORDER BY k.created_at, k.push_id)
	) p`,
	where: `id IS NOT NULL`,
	checks: []auditCheck{{"idempotency", `CASE WHEN known THEN other OR differs OR again ELSE created_at > now() - interval '30 days' OR idempotency_hash IS NULL END`,
		`format('its Idempotency-Key (idempotency_id %s) is known: %s, by another request: %s, beside another request: %s, for another push: %s', idempotency_id, known, other, differs, again)`}},
}
