package audit

import (
	"github.com/sendquota/sendquota/internal/store/pg"
)

const (
	ownColumns = `id, tenant_id, recipient_key, recipient, channel, requested_send_at, send_at, next_at, expires_at, status, freed, plan, attempts,
			possibly_delivered, last_error, idempotency_id, idempotency_hash, created_at, updated_at`
	inKeys   = `recipient_key BETWEEN @key::bigint AND @last::bigint`
	overdue  = `(phase < ` + pg.UnderWay + ` AND next_at < now() - @grace::interval)`
	itsChunk = ` LEFT JOIN near_live l ON l.recipient_key = p.recipient_key AND l.send_at = p.send_at AND l.push_id = p.id`
)

// chunkRows defines the rows of a chunk:
//
//   - near_live: its rows in live
//   - own: its pushes with send times in the stretch (checked), and earlier ones that hold places within a window
//   - recorded: its attempts that began in the stretch (fresh), and earlier ones within a window
//   - ours: pushes in own that attempts or rows in live belong to; others: such pushes that are not in own; known:
//     both
//   - touched: pushes of fresh attempts, with send times that the pass does not cover
//   - elsewhere: attempts of checked pushes that are missing in recorded, because a push that was moved has earlier
//     attempts
//   - attempts: all attempts, each once; near marks those that have all their neighbours within a window beside them
//
// A pass checks each row in one stretch: a row under way or overdue in the latest one, an attempt in the stretch in
// which it began, or else in the stretch of its push.
var chunkRows = `
	WITH near_live AS MATERIALIZED (
		SELECT * FROM live WHERE ` + inKeys + ` AND send_at < @until::timestamptz
		UNION ALL
		SELECT * FROM live WHERE ` + inKeys + ` AND recipient_key = ANY (@ahead::bigint[]) AND send_at >= @until::timestamptz AND @latest::bool
	), own AS MATERIALIZED (
		SELECT ` + ownColumns + `, send_at <@ @stretch::tstzmultirange AS checked
		FROM pushes
		WHERE ` + inKeys + ` AND send_at >= @booked_since::timestamptz AND send_at < @until::timestamptz AND (send_at >= @since::timestamptz OR freed = false)
	), recorded AS MATERIALIZED (
		SELECT ` + attemptColumns + `, ` + begun(`started_at`) + ` AS fresh
		FROM sends
		WHERE ` + inKeys + ` AND started_at >= @begun_since::timestamptz AND started_at < @begun_until::timestamptz
	), needed AS MATERIALIZED (
		SELECT push_id, max(at) AS send_at FROM (
			SELECT push_id, NULL::timestamptz AS at FROM recorded
			UNION ALL SELECT push_id, send_at FROM near_live WHERE phase = ` + pg.UnderWay + ` OR ` + overdue + `
		) n GROUP BY push_id
	), ours AS MATERIALIZED (
		SELECT own.* FROM needed n JOIN own ON own.id = n.push_id
	), others AS MATERIALIZED (
		SELECT p.*
		FROM (
			SELECT n.* FROM needed n LEFT JOIN ours ON ours.id = n.push_id
			WHERE ours.id IS NULL AND (n.send_at IS NOT NULL OR n.push_id IN (SELECT push_id FROM recorded WHERE fresh))
		) n
		CROSS JOIN LATERAL (
			SELECT ` + ownColumns + `, false AS checked FROM pushes WHERE id = n.push_id AND send_at = n.send_at
			UNION ALL
			SELECT ` + ownColumns + `, false FROM pushes WHERE id = n.push_id AND send_at IS DISTINCT FROM n.send_at
			LIMIT 1 -- the second branch runs only if the first finds no row
		) p
	), known AS MATERIALIZED (
		TABLE ours UNION ALL TABLE others
	), touched AS MATERIALIZED (
		SELECT * FROM known
		WHERE NOT checked AND ` + inKeys + ` AND NOT send_at <@ @spans::tstzmultirange AND id IN (SELECT push_id FROM recorded WHERE fresh)
	), own_tenants AS MATERIALIZED (
		SELECT t.id FROM (SELECT tenant_id FROM own WHERE checked UNION SELECT tenant_id FROM touched) p
		CROSS JOIN LATERAL (SELECT id FROM tenants WHERE id = p.tenant_id OFFSET 0) t
	), elsewhere AS MATERIALIZED (
		SELECT s.*, false AS fresh
		FROM (
			SELECT p.id FROM own p LEFT JOIN (SELECT push_id, count(*) AS rows, max(attempt) AS last FROM recorded GROUP BY push_id) s ON s.push_id = p.id
			WHERE p.checked AND (NOT @latest::bool OR (coalesce(s.rows, 0), coalesce(s.last, 0)) IS DISTINCT FROM (p.attempts, p.attempts))
			UNION ALL
			SELECT id FROM touched
		) p
		CROSS JOIN LATERAL (
			SELECT ` + attemptColumns + ` FROM sends
			WHERE push_id = p.id AND NOT (` + inKeys + ` AND started_at >= @begun_since::timestamptz AND started_at < @begun_until::timestamptz) OFFSET 0
		) s
	), shown AS MATERIALIZED (
		SELECT ` + shownColumns + ` FROM ours p ` + itsChunk + `
		UNION ALL
		SELECT ` + shownColumns + ` FROM others p LEFT JOIN LATERAL (
			SELECT * FROM live WHERE recipient_key = p.recipient_key AND send_at = p.send_at AND push_id = p.id OFFSET 0
		) l ON true
	), attempts AS MATERIALIZED (
		SELECT s.*, CASE WHEN p.checked THEN p.send_at ELSE s.started_at END AS filed_at,
			s.fresh OR (coalesce(p.checked, false) OR s.push_id IN (SELECT id FROM touched)) AND NOT (s.started_at <@ @spans::tstzmultirange OR s.started_at >= @end::timestamptz) AS checked
		FROM (
			SELECT *, true AS near FROM recorded UNION ALL SELECT *, false FROM elsewhere UNION ALL
			SELECT ` + underWayColumns + `, true, true FROM near_live l LEFT JOIN known p ON p.id = l.push_id WHERE l.phase = ` + pg.UnderWay + ` AND @latest::bool
		) s
		LEFT JOIN known p ON p.id = s.push_id
	), requests AS MATERIALIZED (
		SELECT * FROM own WHERE checked AND idempotency_id IS NOT NULL
	), keyed AS MATERIALIZED (
		SELECT k.* FROM (SELECT DISTINCT idempotency_id FROM requests) r
		CROSS JOIN LATERAL (SELECT * FROM idempotency WHERE idempotency_id = r.idempotency_id OFFSET 0) k
	)`

// chunkSum returns, for each hour of send times, the number of rows and whether one can still change; and the number
// of the other rows.
var chunkSum = `
	SELECT NULL, NULL, NULL, NULL, CASE WHEN bool_or(status = 'scheduled' OR updated_at > now() - @settled::interval) THEN 'open' END,
		` + pg.HourOf(`send_at`) + `, count(*)
	FROM own WHERE checked GROUP BY 6
	UNION ALL
	SELECT NULL, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM recorded WHERE fresh) + (SELECT count(*) FROM near_live WHERE @latest::bool)`
