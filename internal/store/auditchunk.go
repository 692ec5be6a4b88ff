package store

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A chunk of the workers' audit is all that belongs to the recipients in a range of keys, in some time: their pushes, their
// attempts and their rows in live, read once each in a snapshot of its own. So what is compared with each other is nearly
// always in one chunk, however small that is, and the queries ask of it what they ask of whole tables. The few rows of other
// keys or times that they need are read one by one.

const (
	// chunkTime is for how long a chunk may hold its snapshot, and chunkAim for how long it is to hold it.
	chunkTime, chunkAim = 3 * time.Second, 300 * time.Millisecond
	// firstStep is how many keys the first chunk of a pass has: a 4096th of all. mostStep is how many one can have: half of them.
	firstStep, mostStep uint64 = 1 << 52, 1 << 63
)

// chunkSettings are for one statement over some ten thousand rows. A plan is made for each chunk, and joins by hashes
// whatever the statistics say: rows are looked up one by one only where a lateral join leaves no other way.
var chunkSettings = `SET LOCAL statement_timeout = ` + milliseconds(chunkTime) + `; SET LOCAL work_mem = '64MB'; SET LOCAL max_parallel_workers_per_gather = 0;
	SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_hashjoin = on; SET LOCAL enable_nestloop = off`

// hourOf is when the hour of a time began.
func hourOf(column string) string { return `date_bin('1 hour', ` + column + `, '2000-01-01Z')` }

const (
	ownColumns = `id, tenant_id, recipient_key, recipient, channel, requested_send_at, send_at, next_at, expires_at, status, freed, plan, attempts,
			possibly_delivered, last_error, idempotency_id, idempotency_hash, created_at, updated_at`
	inKeys   = `recipient_key BETWEEN @key::bigint AND @last::bigint`
	overdue  = `(phase < 2 AND next_at < now() - @grace::interval)`
	itsChunk = ` LEFT JOIN near_live l ON l.recipient_key = p.recipient_key AND l.send_at = p.send_at AND l.push_id = p.id`
)

// chunkRows are the rows of a chunk:
//
//   - near_live: its rows in live
//   - own: its pushes that are looked at, and before them those that hold places within a window
//   - recorded: its attempts that are looked at (fresh), and those before them within a window
//   - ours: those of own that attempts and rows in live belong to; others: those that are not among own; known: both
//   - touched: pushes of attempts that are looked at which the pass does not come to otherwise
//   - elsewhere: attempts of pushes that are looked at which are not among recorded: a push that was moved has earlier ones
//   - attempts: all attempts, each once; near are those that have all within a window beside them
//
// Each is looked at in one stretch of time of a pass: what is under way or forgotten, in the latest; an attempt, in that in
// which it began, or else in that of its push.
var chunkRows = `
	WITH near_live AS MATERIALIZED (
		SELECT * FROM live WHERE ` + inKeys + ` AND send_at < @until::timestamptz
		UNION ALL
		SELECT * FROM live WHERE ` + inKeys + ` AND recipient_key = ANY (@ahead::bigint[]) AND send_at >= @until::timestamptz AND @latest::bool
	), own AS MATERIALIZED (
		SELECT ` + ownColumns + `, send_at >= @since::timestamptz AND (@solid::bool OR ` + hourOf(`send_at`) + ` = ANY (@hours::timestamptz[])) AS looked
		FROM pushes
		WHERE ` + inKeys + ` AND send_at >= @booked_since::timestamptz AND send_at < @until::timestamptz AND (send_at >= @since::timestamptz OR freed = false)
	), recorded AS MATERIALIZED (
		SELECT ` + attemptColumns + `, started_at >= @since::timestamptz AND (@solid::bool OR @latest::bool AND started_at >= @until::timestamptz
				OR ` + hourOf(`started_at`) + ` = ANY (@hours::timestamptz[])) AS fresh
		FROM sends
		WHERE ` + inKeys + ` AND started_at >= @begun_since::timestamptz AND started_at < @begun_until::timestamptz
	), needed AS MATERIALIZED (
		SELECT push_id, max(at) AS send_at FROM (
			SELECT push_id, NULL::timestamptz AS at FROM recorded
			UNION ALL SELECT push_id, send_at FROM near_live WHERE phase = 2 OR ` + overdue + `
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
			SELECT ` + ownColumns + `, false AS looked FROM pushes WHERE id = n.push_id AND send_at = n.send_at
			UNION ALL
			SELECT ` + ownColumns + `, false FROM pushes WHERE id = n.push_id AND send_at IS DISTINCT FROM n.send_at
			LIMIT 1 -- the second one is looked for if there is no first one
		) p
	), known AS MATERIALIZED (
		TABLE ours UNION ALL TABLE others
	), touched AS MATERIALIZED (
		SELECT * FROM known
		WHERE NOT looked AND ` + inKeys + ` AND NOT (send_at < @end::timestamptz AND ` + hourOf(`send_at`) + ` = ANY (@all_hours::timestamptz[]))
			AND id IN (SELECT push_id FROM recorded WHERE fresh)
	), own_tenants AS MATERIALIZED (
		SELECT t.id FROM (SELECT tenant_id FROM own WHERE looked UNION SELECT tenant_id FROM touched) p
		CROSS JOIN LATERAL (SELECT id FROM tenants WHERE id = p.tenant_id OFFSET 0) t
	), elsewhere AS MATERIALIZED (
		SELECT s.*, false AS fresh
		FROM (
			SELECT p.id FROM own p LEFT JOIN (SELECT push_id, count(*) AS rows, max(attempt) AS last FROM recorded GROUP BY push_id) s ON s.push_id = p.id
			WHERE p.looked AND (NOT @latest::bool OR (coalesce(s.rows, 0), coalesce(s.last, 0)) IS DISTINCT FROM (p.attempts, p.attempts))
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
		SELECT s.*, CASE WHEN p.looked THEN p.send_at ELSE s.started_at END AS filed_at,
			s.fresh OR (coalesce(p.looked, false) OR s.push_id IN (SELECT id FROM touched)) AND ` + hourOf(`s.started_at`) + ` <> ALL (@all_hours::timestamptz[]) AS looked
		FROM (
			SELECT * FROM (SELECT *, true AS near FROM recorded UNION ALL SELECT *, false FROM elsewhere) s
			WHERE ended_at IS NOT NULL OR (push_id, attempt) NOT IN (SELECT push_id, attempts FROM near_live WHERE phase = 2)
			UNION ALL
			SELECT ` + underWayColumns + `, true, true FROM near_live l LEFT JOIN known p ON p.id = l.push_id WHERE l.phase = 2 AND @latest::bool
		) s
		LEFT JOIN known p ON p.id = s.push_id
	), requests AS MATERIALIZED (
		SELECT r.*, coalesce(p.looked, false) AS looked
		FROM (SELECT DISTINCT idempotency_id FROM own WHERE looked AND idempotency_id IS NOT NULL) k
		CROSS JOIN LATERAL (
			SELECT id, tenant_id, recipient, send_at, idempotency_id, idempotency_hash, created_at FROM pushes
			WHERE idempotency_id = k.idempotency_id OFFSET 0
		) r
		LEFT JOIN own p ON p.id = r.id
	)`

// chunkSum tells of each hour of send times, and of none, how many rows were read, and whether something can still change.
var chunkSum = `
	SELECT NULL, NULL, NULL, NULL, CASE WHEN bool_or(status IN ('scheduled', 'sending') OR updated_at > now() - @settled::interval) THEN 'open' END,
		` + hourOf(`send_at`) + `, count(*)
	FROM own WHERE looked GROUP BY 6
	UNION ALL
	SELECT NULL, NULL, NULL, NULL, NULL, NULL, (SELECT count(*) FROM recorded WHERE fresh) + (SELECT count(*) FROM near_live WHERE @latest::bool)`

// cut looks at the rows of a chunk.
func (p *AuditPass) cut() auditCut {
	return auditCut{
		policy:    p.plan.Policy,
		forgotten: `(SELECT * FROM near_live WHERE ` + overdue + ` AND @latest::bool)`,
		underWay:  `(SELECT * FROM near_live WHERE phase = 2 AND @latest::bool)`,
		busy:      `EXISTS (SELECT FROM near_live o WHERE o.recipient_key = l.recipient_key AND o.phase = 2 AND o.next_at - now() > - @grace::interval)`,
		pushes:    auditRows{`(SELECT * FROM own WHERE looked UNION ALL TABLE touched)`, `true`},
		known:     `known`,
		shown:     `shown`,
		tenants:   `own_tenants`,
		itsLive:   itsChunk,
		records:   `(TABLE recorded UNION ALL TABLE elsewhere)`,
		sends:     auditRows{`attempts`, `s.looked`},
		sendAt:    `s.filed_at`,
		around:    auditRows{`(SELECT * FROM attempts WHERE near)`, `fresh`},
		bookings:  auditRows{`(SELECT * FROM own WHERE freed = false AND status IN ('scheduled', 'sending', 'sent'))`, `looked`},
		requests:  auditRows{`requests`, `looked`},
	}
}

// sql asks everything of a chunk.
func (p *AuditPass) sql() string {
	sql := chunkRows
	for _, q := range p.cut().queries() {
		sql += `SELECT *, NULL::bigint FROM (` + q.sql() + `) found (name, tenant_id, recipient, push_id, detail, at) UNION ALL `
	}
	return sql + chunkSum
}

// chunk is what was read in one snapshot.
type chunk struct {
	rows int
	open []time.Time // hours in which something can still change
}

// aheadSQL finds what is under way, or was due long ago, before its time comes to be looked at.
const aheadSQL = `
	SELECT l.recipient_key FROM ` + allUnderWay + ` l WHERE l.send_at >= @until
	UNION
	SELECT l.recipient_key FROM ` + allForgotten + ` l WHERE l.send_at >= @until
	LIMIT 1000`

// read reads the next chunk, and moves the walk behind it.
func (p *AuditPass) read(ctx context.Context, w *walk, found func(Finding, time.Time)) (c chunk, err error) {
	err = p.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if !w.Begun {
			rows, _ := tx.Query(ctx, aheadSQL, pgx.NamedArgs{"grace": auditGrace, "until": w.Spans[len(w.Spans)-1].Until})
			w.Ahead, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			w.Begun = true
			return err
		}
		rows, _ := tx.Query(ctx, p.sql(), p.args(*w))
		var (
			f                         Finding
			check, recipient, details *string
			tenant, push              *[16]byte
			at                        *time.Time
			n                         *int
		)
		_, err := pgx.ForEachRow(rows, []any{&check, &tenant, &recipient, &push, &details, &at, &n}, func() error {
			switch {
			case check != nil:
				f = Finding{Check: *check, Tenant: *tenant, Recipient: *recipient, Push: *push, Detail: *details}
				slice := time.Time{}
				if at != nil {
					slice = at.Truncate(auditSlice)
				}
				found(f, slice)
			default:
				if c.rows += *n; details != nil {
					c.open = append(c.open, at.Truncate(auditSlice))
				}
			}
			return nil
		})
		w.pass(p.last(*w))
		return err
	})
	return c, err
}

// snapshot reads in a transaction that lasts as long as a chunk may.
func (p *AuditPass) snapshot(ctx context.Context, read func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, 10*chunkTime) // for a connection that does not answer
	defer cancel()
	return pgx.BeginTxFunc(ctx, p.store.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, chunkSettings); err != nil {
			return err
		}
		return read(ctx, tx)
	})
}

// args are the arguments of the next chunk.
func (p *AuditPass) args(w walk) pgx.NamedArgs {
	args := auditArgs(p.plan.Policy, p.plan.Kept)
	spans := w.stretch()
	since, until, latest := spans[0].Since, spans[len(spans)-1].Until, w.latest()
	begunUntil := until
	if latest {
		begunUntil = farAhead
	}
	for name, value := range map[string]any{
		"key": w.Key, "last": p.last(w), "since": since, "until": until, "latest": latest,
		"booked_since": since.Add(-p.plan.Policy.Reach()), "begun_since": since.Add(-p.plan.Policy.Reach() - longAttempt), "begun_until": begunUntil,
		"solid": len(spans) == 1, "hours": hours(spans), "end": w.Spans[len(w.Spans)-1].Until, "all_hours": hours(w.Spans), "ahead": w.Ahead, "settled": settled,
	} {
		args[name] = value
	}
	return args
}

// farAhead is later than any attempt.
var farAhead = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// hours lists when the hours of some stretches begin.
func hours(spans []stretch) (all []time.Time) {
	for _, s := range spans {
		for h := s.Since; h.Before(s.Until); h = h.Add(auditSlice) {
			all = append(all, h)
		}
	}
	return all
}

// last is the last key of the next chunk.
func (p *AuditPass) last(w walk) int64 {
	last := int64(math.MaxInt64)
	if left := uint64(math.MaxInt64) - uint64(w.Key); w.Step-1 < left { // both wrap around in the same way
		last = w.Key + int64(w.Step-1)
	}
	if i, found := slices.BinarySearch(p.cuts, w.Key); found && i+1 < len(p.cuts) {
		i++
		last = min(last, p.cuts[i]-1)
	} else if !found && i < len(p.cuts) {
		last = min(last, p.cuts[i]-1)
	}
	return last
}

// endsSQL finds the first and the last recipient with something in a range, and a push of the first.
const endsSQL = `
	SELECT min(first), max(last) FROM (
		SELECT (SELECT recipient_key FROM pushes WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM pushes WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT recipient_key FROM sends WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM sends WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT recipient_key FROM live WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM live WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
	) ends (first, last)`

// narrow makes a chunk that took too long smaller: about a quarter of it. It returns false if there is only one recipient in
// it, and a push of that one.
func (p *AuditPass) narrow(ctx context.Context, w *walk) (ok bool, of uuid.UUID, err error) {
	err = p.snapshot(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var first, last *int64
		args := pgx.NamedArgs{"key": w.Key, "last": p.last(*w)}
		if err := tx.QueryRow(ctx, endsSQL, args).Scan(&first, &last); err != nil || first == nil {
			return err
		}
		if ok = *first < *last; ok {
			w.Step = uint64(*first) + (uint64(*last)-uint64(*first))/4 - uint64(w.Key) + 1
			return nil
		}
		err := tx.QueryRow(ctx, `SELECT coalesce((SELECT id FROM pushes WHERE recipient_key = $1 LIMIT 1), (SELECT push_id FROM sends WHERE recipient_key = $1 LIMIT 1), (SELECT push_id FROM live WHERE recipient_key = $1 LIMIT 1))`, *first).Scan((*[16]byte)(&of))
		return err
	})
	return ok, of, err
}
