package store

// allForgotten are the rows in live of pushes that are due for long and still wait, by the index live_lane.
const allForgotten = `(
			` + channelsSQL + `
			SELECT l.* FROM channels c CROSS JOIN ` + kinds + ` CROSS JOIN LATERAL (
				SELECT * FROM live WHERE channel = c.name AND phase = k.phase AND next_at < now() - @grace::interval OFFSET 0
			) l
		)`

// waitingQuery finds pushes that are due and forgotten. A push that waits for another attempt of its recipient is not
// forgotten.
func (c auditCut) waitingQuery() auditQuery {
	return auditQuery{
		who:    `p.tenant_id, p.recipient, p.id`,
		at:     `p.send_at`,
		from:   c.forgotten + ` l JOIN ` + c.known + ` p ON p.id = l.push_id`,
		where:  `NOT ` + c.busy,
		checks: []auditCheck{{"overdue", `true`, `format('due since %s, expires at %s, and still scheduled', l.next_at, l.expires_at)`}},
	}
}

// wantedKey is what push.RecipientKey gives, and keyBytes its bytes, which are compared in a third of the time.
const (
	keyBytes  = `substr(sha256(uuid_send(p.tenant_id) || convert_to(p.recipient, 'UTF8')), 1, 8)`
	wantedKey = `('x' || encode(` + keyBytes + `, 'hex'))::bit(64)::bigint`
)

// pushQuery looks at pushes by themselves.
func (c auditCut) pushQuery() auditQuery {
	return auditQuery{
		who:   `p.tenant_id, p.recipient, p.id`,
		at:    `p.send_at`,
		from:  c.pushes.from + ` p LEFT JOIN ` + c.tenants + ` t ON t.id = p.tenant_id ` + c.itsLive,
		where: c.pushes.where,
		checks: []auditCheck{
			{"not-live", `p.status <> 'sending' AND (p.status = 'scheduled') <> (l.push_id IS NOT NULL) OR (l.plan, l.expires_at, l.tenant_id, l.channel) <> (p.plan, p.expires_at, p.tenant_id, p.channel)
				OR l.token IS NULL AND l.next_at <> p.next_at`,
				`format('it is %s, to be tried at %s (plan %s), and in the table live: %s, to be tried at %s (plan %s)', p.status, p.next_at, p.plan, l.push_id IS NOT NULL, l.next_at, l.plan)`},
			{"open-attempt", `p.status = 'sending' AND l.token IS NULL`, `'it is said to be sending in the table pushes'`},
			{"overdue", `p.status = 'scheduled' AND l.token IS NULL AND p.expires_at < now() - @grace::interval AND p.next_at >= now() - @grace::interval`,
				`format('it expired at %s, and is to be tried at %s', p.expires_at, p.next_at)`},
			{"early", `p.status = 'scheduled' AND l.token IS NULL AND p.next_at < p.send_at`,
				`format('it is to be tried at %s, before its send time, %s', p.next_at, p.send_at)`},
			{"expired-early", `p.status = 'expired' AND p.updated_at < p.expires_at`,
				`format('it expired at %s, before its expiry, %s', p.updated_at, p.expires_at)`},
			{"no-reason", `p.status IN ('failed', 'expired') AND p.last_error = ''`,
				`format('it is %s, and its record does not say why', p.status)`},
			{"times", `p.updated_at < p.created_at OR NOT (isfinite(p.send_at) AND isfinite(p.next_at) AND isfinite(p.expires_at))`,
				`format('requested_send_at %s, send_at %s, next_at %s, expires_at %s, created_at %s, updated_at %s', p.requested_send_at, p.send_at, p.next_at, p.expires_at, p.created_at, p.updated_at)`},
			{"unknown-tenant", `t.id IS NULL`, `'there is no such tenant'`},
			{"recipient-key", `int8send(p.recipient_key) <> ` + keyBytes,
				`format('its recipient_key is %s, and that of its recipient is %s', p.recipient_key, ` + wantedKey + `)`},
		},
	}
}

// recordQuery holds the record of each push to all of its attempts. None has a number above the push's count (see
// attemptQuery), so that as many as that have no gaps. What began before [Kept] attempts may be gone: the first attempts of a
// push that was made before then, and all of one that ended before then.
func (c auditCut) recordQuery() auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, id`,
		at:  `send_at`,
		from: `(
			SELECT *, made AND rows < attempts AND CASE WHEN rows = 0 THEN ended ELSE first = attempts - rows + 1 END AS gone
			FROM (
				SELECT p.id, p.tenant_id, p.recipient, p.send_at, p.status, p.attempts, p.possibly_delivered,
					coalesce(s.rows, 0) AS rows, s.first, coalesce(s.delivered, false) AS delivered, coalesce(s.unknown, false) AS unknown,
					p.created_at < now() - @keep_sends::interval AS made,
					p.status = 'scheduled' OR p.updated_at < now() - @keep_sends::interval + interval '1 day' AS ended
				FROM ` + c.pushes.from + ` p LEFT JOIN (
					SELECT push_id, count(*) AS rows, min(attempt) AS first,
						bool_or(outcome = 'delivered') IS TRUE AS delivered, bool_or(outcome = 'unknown') IS TRUE AS unknown
					FROM ` + c.records + ` s GROUP BY push_id
				) s ON s.push_id = p.id WHERE ` + c.pushes.where + `
			) p
		) p`,
		where: `true`,
		checks: []auditCheck{
			{"attempts", `rows <> attempts AND NOT gone`, `format('it counts %s attempts, and %s are recorded', attempts, rows)`},
			{"outcome", `(status = 'sent' AND NOT delivered OR status = 'failed' AND rows = 0) AND NOT (gone AND ended)`,
				`format('it is %s, and none of %s attempts made it so', status, rows)`},
			{"possibly-delivered", `possibly_delivered AND NOT unknown AND NOT delivered AND NOT gone OR NOT possibly_delivered AND (unknown OR delivered AND status IN ('failed', 'canceled', 'expired'))`,
				`format('it is %s, possibly_delivered is %s; an attempt of it was delivered: %s, is unknown: %s', status, possibly_delivered, delivered, unknown)`},
		},
	}
}

// requestQuery compares the pushes that one Idempotency-Key made, one with the next.
func (c auditCut) requestQuery() auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, id`,
		at:  `send_at`,
		from: `(
			SELECT *,
				row_number() OVER w > 1 AND (tenant_id, idempotency_hash) IS DISTINCT FROM (lag(tenant_id) OVER w, lag(idempotency_hash) OVER w) AS differs
			FROM ` + c.requests.from + ` p
			WINDOW w AS (PARTITION BY idempotency_id ORDER BY created_at, id)
		) p`,
		where: c.requests.where,
		checks: []auditCheck{{"idempotency", `differs OR idempotency_hash IS NULL`,
			`format('another request made a push under its Idempotency-Key (idempotency_id %s)', idempotency_id)`}},
	}
}
