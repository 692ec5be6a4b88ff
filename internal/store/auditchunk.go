package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A chunk of the workers' audit is a few thousand rows of one of three walks, read in a snapshot of its own:
//
//   - through live: what is forgotten, and attempts under way;
//   - through the pushes of some time, tenant by tenant: each with all that was recorded of its attempts;
//   - through the attempts of some time: those without a push, or of a push that the walk before does not come to.
//
// What a row is compared with is read whole, whichever chunk that is in: the bookings and attempts of its recipient as far
// back as a window reaches, and the pushes of its Idempotency-Key. So a chunk of one row finds what an audit of everything
// finds of that row.

// chunkTime is for how long a chunk may hold its snapshot: one statement of it, and all before the last one.
const chunkTime = 2 * time.Second

// chunkSettings add to those of all connections: what leads to one index path there does so here.
var chunkSettings = `SET LOCAL statement_timeout = ` + milliseconds(chunkTime) + `; SET LOCAL work_mem = '64MB'; SET LOCAL max_parallel_workers_per_gather = 0`

// liveChunk are the rows of live in a chunk, behind one and up to another in the order of the primary key.
const liveChunk = `(SELECT * FROM live
				WHERE (recipient_key, send_at, push_id) > (@behind_key::bigint, @behind_at::text::timestamptz, @behind_id::uuid)
					AND (recipient_key, send_at, push_id) <= (@key::bigint, @at::text::timestamptz, @id::uuid))`

const (
	forgottenChunk = `(SELECT * FROM ` + liveChunk + ` l WHERE phase < 2 AND next_at < now() - @grace::interval)`
	underWayChunk  = `(SELECT * FROM ` + liveChunk + ` l WHERE phase = 2)`

	// sendsUnderWay and sendsEnded are the attempts that a chunk looks at.
	sendsUnderWay = `(SELECT * FROM (
				SELECT ` + underWayColumns + ` FROM ` + underWayChunk + ` l LEFT JOIN pushes p ON p.id = l.push_id
			) s (` + attemptNames + `))`
	sendsEnded = `(SELECT ` + attemptColumns + ` FROM sends WHERE push_id = ANY (@pushes::uuid[]))`
)

// around are the attempts of the recipients of some attempts, as far back as they can matter to these. looked is true of
// those that the chunk looks at. It stands in the list of columns, where Postgres looks it up in a hash table.
func around(sends, looked string) auditRows {
	return auditRows{`(
				SELECT s.*, ` + looked + ` AS looked
				FROM (SELECT recipient_key AS key, min(started_at) AS first, max(started_at) AS last FROM ` + sends + ` s GROUP BY recipient_key) r
				CROSS JOIN LATERAL (
					SELECT ` + attemptColumns + ` FROM sends
					WHERE recipient_key = r.key AND started_at >= r.first` + back + ` AND started_at <= r.last
					UNION ALL
					SELECT ` + underWayColumns + ` FROM live l LEFT JOIN pushes p ON p.id = l.push_id
					WHERE l.recipient_key = ANY (ARRAY[r.key]) AND l.token IS NOT NULL
						AND l.started_at >= r.first` + back + ` AND l.started_at <= r.last
				) s
			)`, `looked`}
}

// liveCut looks at rows of live.
func (p *AuditPass) liveCut() auditCut {
	return auditCut{
		policy: p.plan.Policy, forgotten: forgottenChunk, underWay: underWayChunk, sends: auditRows{sendsUnderWay, `true`},
		around: around(sendsUnderWay, `s.under_way AND s.push_id IN (SELECT push_id FROM `+underWayChunk+` l)`),
	}
}

// pushCut looks at pushes by their ids, and at their attempts that have ended.
func (p *AuditPass) pushCut() auditCut {
	const ours = `IN (SELECT unnest(@pushes::uuid[]))`
	return auditCut{
		policy: p.plan.Policy,
		pushes: `p.id = ANY (@pushes::uuid[])`,
		sends:  auditRows{sendsEnded, `true`},
		around: around(sendsEnded, `NOT s.under_way AND s.push_id `+ours),
		bookings: auditRows{`(
				SELECT b.*, b.id ` + ours + ` AS looked
				FROM (
					SELECT recipient_key AS key, min(send_at) AS first, max(send_at) AS last FROM pushes
					WHERE id = ANY (@pushes::uuid[]) AND freed = false AND status IN ('scheduled', 'sending', 'sent') GROUP BY recipient_key
				) r
				CROSS JOIN LATERAL (
					SELECT id, tenant_id, recipient_key, recipient, send_at FROM pushes
					WHERE recipient_key = r.key AND freed = false AND send_at >= r.first - @reach::interval AND send_at <= r.last
						AND status IN ('scheduled', 'sending', 'sent')
					OFFSET 0
				) b
			)`, `looked`},
		requests: auditRows{`(
				SELECT * FROM pushes
				WHERE idempotency_id = ANY (SELECT idempotency_id FROM pushes WHERE id = ANY (@pushes::uuid[]) AND idempotency_id IS NOT NULL)
			)`, `id = ANY (@pushes::uuid[])`},
	}
}

// liveQueries are what is asked of rows of live.
func (c auditCut) liveQueries(forgotten, underWay bool) (all []auditQuery) {
	if forgotten {
		all = append(all, c.waitingQuery())
	}
	if underWay {
		all = append(all, c.underWayQuery(), c.attemptQuery(), c.overlapQuery())
		if len(c.policy) > 0 {
			all = append(all, c.actualQuery())
		}
	}
	return all
}

// pushQueries are what is asked of pushes. Where none was tried, and none says that it was, no record is compared with
// attempts.
func (c auditCut) pushQueries(tried, keyed bool) []auditQuery {
	all := []auditQuery{c.pushQuery()}
	if len(c.policy) > 0 {
		all = append(all, c.promisedQuery())
	}
	if tried {
		all = append(all, c.recordQuery(), c.attemptQuery(), c.overlapQuery())
		if len(c.policy) > 0 {
			all = append(all, c.actualQuery())
		}
	}
	if keyed {
		all = append(all, c.requestQuery())
	}
	return all
}

// chunk is the rows of one snapshot.
type chunk struct {
	args    pgx.NamedArgs
	queries []auditQuery
	rows    int
	slices  map[uuid.UUID]time.Time // the hour of each push: see [AuditPass]
	open    []time.Time             // hours in which something can still change
}

// pickLive picks the next rows of live, and moves the walk behind them.
func (p *AuditPass) pickLive(ctx context.Context, tx pgx.Tx, w *walk) (c chunk, err error) {
	c.args = pgx.NamedArgs{"behind_key": w.Key, "behind_at": w.At, "behind_id": [16]byte(w.ID), "grace": auditGrace, "rows": w.Rows}
	rows, _ := tx.Query(ctx, `
		SELECT recipient_key, send_at::text, push_id, phase < 2 AND next_at < now() - @grace::interval, phase = 2 FROM live
		WHERE (recipient_key, send_at, push_id) > (@behind_key::bigint, @behind_at::text::timestamptz, @behind_id::uuid)
		ORDER BY recipient_key, send_at, push_id LIMIT @rows`, c.args)
	var isForgotten, isUnderWay, forgotten, underWay bool
	tag, err := pgx.ForEachRow(rows, []any{&w.Key, &w.At, (*[16]byte)(&w.ID), &isForgotten, &isUnderWay}, func() error {
		forgotten, underWay = forgotten || isForgotten, underWay || isUnderWay
		return nil
	})
	c.rows = int(tag.RowsAffected())
	c.args["key"], c.args["at"], c.args["id"] = w.Key, w.At, [16]byte(w.ID)
	if c.queries = p.liveCut().liveQueries(forgotten, underWay); c.rows < w.Rows {
		w.enter(throughPushes)
	}
	return c, err
}

// tenantsAtOnce bounds the tenants of a chunk: most may have nothing in a span.
const tenantsAtOnce = 1000

// tenantsSQL lists tenants that have pushes, by one search each.
const tenantsSQL = `
	WITH RECURSIVE t (id) AS (
		(SELECT tenant_id FROM pushes WHERE tenant_id >= @tenant::uuid ORDER BY tenant_id LIMIT 1)
		UNION ALL SELECT (SELECT tenant_id FROM pushes WHERE tenant_id > t.id ORDER BY tenant_id LIMIT 1) FROM t WHERE t.id IS NOT NULL
	) SELECT id FROM t WHERE id IS NOT NULL LIMIT @tenants_at_once`

// pushesSQL reads pushes of tenants in a span, by the index pushes_tenant, one tenant after the other.
const pushesSQL = `
	SELECT p.tenant_id, p.send_at, p.id, p.status IN ('scheduled', 'sending') OR p.updated_at > now() - @settled::interval,
		p.attempts > 0 OR p.possibly_delivered OR p.status NOT IN ('scheduled', 'canceled', 'expired') OR EXISTS (SELECT FROM sends WHERE push_id = p.id),
		p.idempotency_id IS NOT NULL
	FROM unnest(@tenants::uuid[]) t (id) CROSS JOIN LATERAL (
		SELECT tenant_id, send_at, id, status, updated_at, attempts, possibly_delivered, idempotency_id FROM pushes
		WHERE tenant_id = t.id AND send_at < @until::timestamptz
			AND (send_at, id) > (CASE WHEN t.id = @tenant::uuid THEN @behind_at::timestamptz ELSE @since::timestamptz END, CASE WHEN t.id = @tenant::uuid THEN @behind_id::uuid ELSE @none::uuid END)
		ORDER BY send_at, id LIMIT @rows
	) p LIMIT @rows`

// pickPushes picks the next pushes of a span, and moves the walk behind them.
func (p *AuditPass) pickPushes(ctx context.Context, tx pgx.Tx, w *walk) (c chunk, err error) {
	span := w.Spans[w.Span]
	args := pgx.NamedArgs{"tenant": [16]byte(w.Tenant), "tenants_at_once": tenantsAtOnce, "behind_at": w.From, "behind_id": [16]byte(w.ID),
		"none": [16]byte{}, "since": span.From, "until": span.Until, "rows": w.Rows, "settled": settled}
	rows, _ := tx.Query(ctx, tenantsSQL, args)
	tenants, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
	if err != nil {
		return c, err
	}
	args["tenants"] = tenants
	c.slices = map[uuid.UUID]time.Time{}
	var (
		id                    uuid.UUID
		ids                   [][16]byte
		at                    time.Time
		open, isTried, hasKey bool
		tried, keyed          bool
	)
	rows, _ = tx.Query(ctx, pushesSQL, args)
	_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&w.Tenant), &at, (*[16]byte)(&id), &open, &isTried, &hasKey}, func() error {
		slice := at.Truncate(auditSlice)
		if ids, c.slices[id] = append(ids, id), slice; open {
			c.open = append(c.open, slice)
		}
		tried, keyed = tried || isTried, keyed || hasKey
		w.From, w.ID = at, id
		return nil
	})
	c.rows, c.args = len(ids), pgx.NamedArgs{"pushes": ids}
	if c.rows > 0 {
		c.queries = p.pushCut().pushQueries(tried, keyed)
	}
	switch {
	case c.rows == w.Rows: // there may be more
	case len(tenants) == tenantsAtOnce:
		w.Tenant, w.From, w.ID = tenants[len(tenants)-1], span.Until, uuid.Nil
	default:
		w.enter(throughSends)
	}
	return c, err
}

// pickSends picks pushes that the walk through pushes does not come to, by their attempts of the next while, and moves the
// walk behind it. One with several such attempts is looked at with its last one. An attempt without a push counts as one.
func (p *AuditPass) pickSends(ctx context.Context, tx pgx.Tx, w *walk) (c chunk, err error) {
	span := w.Spans[w.Span]
	until := w.From.Add(w.Step)
	if until.After(span.Until) {
		until = span.Until
	}
	froms, untils := make([]time.Time, len(w.Spans)), make([]time.Time, len(w.Spans))
	for i, s := range w.Spans {
		froms[i], untils[i] = s.From, s.Until
	}
	// The plan is made for these times: sends_started is the way for a short while, and a long one ends in a time-out.
	if _, err := tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_custom_plan`); err != nil {
		return c, err
	}
	var ids [][16]byte
	err = tx.QueryRow(ctx, `
		SELECT count(*), coalesce(array_agg(DISTINCT s.push_id) FILTER (WHERE
			(p.id IS NULL OR NOT EXISTS (SELECT FROM unnest(@froms::timestamptz[], @untils::timestamptz[]) span (a, b) WHERE p.send_at >= a AND p.send_at < b))
			AND NOT EXISTS (SELECT FROM sends n WHERE n.push_id = s.push_id AND n.started_at >= @until)), '{}')
		FROM sends s LEFT JOIN pushes p ON p.id = s.push_id
		WHERE s.started_at >= @since AND s.started_at < @until`,
		pgx.NamedArgs{"froms": froms, "untils": untils, "since": w.From, "until": until}).Scan(&c.rows, &ids)
	if err != nil {
		return c, err
	}
	if _, err := tx.Exec(ctx, `SET LOCAL plan_cache_mode = force_generic_plan`); err != nil {
		return c, err
	}
	c.args, c.slices = pgx.NamedArgs{"pushes": ids}, map[uuid.UUID]time.Time{}
	for _, id := range ids {
		c.slices[id] = w.From.Truncate(auditSlice)
	}
	if len(ids) > 0 {
		c.queries = p.pushCut().pushQueries(true, true)
	}
	switch {
	case c.rows > w.Rows:
		w.Step = max(w.Step/2, leastStep)
	case c.rows <= w.Rows/2:
		w.Step = min(2*w.Step, mostStep)
	}
	if w.From = until; !until.Before(span.Until) {
		w.Span++
		w.enter(throughPushes)
	}
	return c, nil
}

// read picks the rows of a chunk, and asks all queries of them, unless it is only to move the walk behind them.
func (p *AuditPass) read(ctx context.Context, w *walk, only bool, found func(Finding, time.Time)) (c chunk, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*chunkTime) // for a connection that does not answer
	defer cancel()
	err = pgx.BeginTxFunc(ctx, p.store.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, chunkSettings); err != nil {
			return err
		}
		began := time.Now()
		if c, err = p.pick(ctx, tx, w); err != nil || only {
			return err
		}
		args := auditArgs(p.plan.Policy)
		for name, value := range c.args {
			args[name] = value
		}
		for _, q := range c.queries {
			if time.Since(began) > chunkTime {
				return errTooLong
			}
			if err := q.run(ctx, tx, args, func(f Finding) { found(f, c.slices[f.Push]) }); err != nil {
				return err
			}
		}
		return nil
	})
	return c, err
}

func (p *AuditPass) pick(ctx context.Context, tx pgx.Tx, w *walk) (chunk, error) {
	switch w.Through {
	case throughLive:
		return p.pickLive(ctx, tx, w)
	case throughPushes:
		return p.pickPushes(ctx, tx, w)
	case throughSends:
		return p.pickSends(ctx, tx, w)
	}
	return chunk{}, fmt.Errorf("audit: no walk through %q", w.Through)
}
