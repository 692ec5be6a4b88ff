package audit

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

// inTime is the condition that an attempt s was delivered, and that its outcome arrived before its lease expired. Such
// an attempt ended its push at once. After a late answer, ended_at stays the end of the lease; see finishSQL.
const inTime = `s.outcome = 'delivered' AND s.ended_at <> s.lease_until`

// decisive is the condition that an attempt ended its push or is under way. The push was not moved after the attempt
// began.
const decisive = `(p.status IN ('sending', 'failed') AND s.attempt = p.attempts OR p.status = 'sent' AND ` + inTime + `)`

// shownColumns selects a push p as callers see it, including the effect of an attempt l under way.
const shownColumns = `p.id, p.tenant_id, p.recipient_key, p.recipient, p.channel, p.send_at, p.expires_at, p.possibly_delivered,
				CASE WHEN l.token IS NULL THEN p.status ELSE 'sending' END AS status, coalesce(l.attempts, p.attempts) AS attempts,
				coalesce(l.started_at, p.updated_at) AS updated_at`

// allUnderWay selects the rows in live of attempts under way, by the index live_lane.
var allUnderWay = `(
			` + pg.InAllShards(pg.ChannelsSQL) + ` SELECT l.* FROM channels c CROSS JOIN LATERAL (SELECT * FROM live WHERE channel = c.name AND phase = ` + pg.UnderWay + ` OFFSET 0) l
		)`

// attemptColumns selects an attempt from sends. An attempt under way has a row in live only: underWayColumns selects it.
const (
	attemptNames    = `push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, handed_at, ended_at, outcome, under_way, address_key`
	attemptColumns  = `push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, handed_at, ended_at, outcome, false AS under_way, address_key`
	underWayColumns = `l.push_id, l.attempts, l.tenant_id, l.recipient_key, coalesce(p.recipient, ''), l.channel, l.started_at, l.next_at, NULL::timestamptz, NULL::timestamptz, NULL::text, true, l.address_key`
)

// underWayQuery checks attempts that have not ended.
var underWayQuery = auditQuery{
	who:   `p.tenant_id, p.recipient, p.id`,
	at:    `p.send_at`,
	from:  `near_live l JOIN known p ON p.id = l.push_id`,
	where: `l.phase = ` + pg.UnderWay + ` AND @latest::bool`,
	checks: []auditCheck{
		{"open-attempt", `(p.status, p.attempts) <> ('scheduled', l.attempts - 1)`,
			`format('attempt %s is under way, and the push is %s after %s attempts', l.attempts, p.status, p.attempts)`},
		{"lost", `l.next_at < now() - @grace::interval`,
			`format('the lease of attempt %s ended at %s, and it was not reaped', l.attempts, l.next_at)`},
	},
}

// attemptQuery compares each attempt with its push. The push may be missing if the attempt ended longer ago than
// pushes are kept.
var attemptQuery = auditQuery{
	who:   `s.tenant_id, s.recipient, s.push_id`,
	at:    `s.filed_at`,
	from:  `attempts s LEFT JOIN shown p ON p.id = s.push_id`,
	where: `s.checked`,
	checks: []auditCheck{
		// While a recipient is being erased, the push may have lost the name before the attempt, or the attempt before the push.
		{"orphan", `((s.tenant_id, s.recipient_key, s.channel) IS DISTINCT FROM (p.tenant_id, p.recipient_key, p.channel) OR s.recipient <> p.recipient AND '' NOT IN (s.recipient, p.recipient))
			AND (p.id IS NOT NULL OR s.ended_at >= now() - @keep_pushes::interval IS NOT FALSE)`,
			`format('attempt %s belongs to %s', s.attempt, CASE WHEN p.id IS NULL THEN 'no push' ELSE 'a push of another tenant, recipient or channel' END)`},
		{"open-attempt", `s.ended_at IS NULL AND (p.status <> 'sending' OR s.attempt <> p.attempts)`,
			`format('attempt %s has no end, and the push is %s after %s attempts', s.attempt, p.status, p.attempts)`},
		{"attempts", `s.attempt > p.attempts`, `format('attempt %s is recorded, and the push counts %s', s.attempt, p.attempts)`},
		{"delivered-again", inTime + ` AND (s.attempt < p.attempts OR p.possibly_delivered AND p.status IN ('failed', 'canceled', 'expired')) OR s.outcome = 'delivered' AND p.status = 'scheduled'`,
			`format('attempt %s was delivered; the push is %s after %s attempts', s.attempt, p.status, p.attempts)`},
		{"after-end", `p.status IN ('sent', 'failed', 'canceled', 'expired') AND s.started_at > p.updated_at OR p.status = 'canceled' AND s.handed_at > p.updated_at`,
			`format('attempt %s began at %s, the provider had it at %s, and the push was %s at %s', s.attempt, s.started_at, coalesce(s.handed_at::text, 'an unknown time'), p.status, p.updated_at)`},
		{"early", decisive + ` AND s.started_at < p.send_at`,
			`format('attempt %s began at %s, before the send time, %s', s.attempt, s.started_at, p.send_at)`},
		{"too-late", decisive + ` AND s.started_at >= p.expires_at`,
			`format('attempt %s began at %s, and the push expired at %s', s.attempt, s.started_at, p.expires_at)`},
		// A suppression counts from a minute after its time, because it was committed by then.
		{"suppressed", `s.address_key IS NOT NULL AND s.tenant_id IN (SELECT id FROM tenants WHERE suppresses) AND EXISTS (
				SELECT FROM suppressions e WHERE e.address_key = s.address_key AND e.at + interval '1 minute' < s.started_at AND (e.until IS NULL OR e.until > s.started_at))`,
			`format('attempt %s began at %s, when its address was suppressed', s.attempt, s.started_at)`},
		{"times", `s.handed_at < s.started_at OR s.handed_at IS NOT NULL AND s.outcome IS DISTINCT FROM 'delivered' OR s.lease_until <= s.started_at OR NOT isfinite(s.lease_until) OR s.started_at > now() + @grace::interval`,
			`format('attempt %s: started_at %s, handed_at %s, ended_at %s, lease_until %s', s.attempt, s.started_at, s.handed_at, s.ended_at, s.lease_until)`},
	},
}
