package audit

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// A chunk of an audit holds the pushes, attempts and rows in live of the recipients in a range of keys, for some stretch of
// time. One statement reads each row once, in a snapshot of its own. So rows that are compared with each other are nearly
// always in one chunk, even if it is small. The few further rows that a chunk needs are read one by one.

const (
	// chunkTime is the maximum duration of a chunk's snapshot. The size of chunks is adjusted so that they take chunkAim.
	chunkTime, chunkAim = 3 * time.Second, 300 * time.Millisecond
	// firstStep is the number of keys in the first chunk of a pass, a 4096th of all. mostStep is the maximum, half of all.
	firstStep, mostStep uint64 = 1 << 52, 1 << 63
	// fewRows cannot make a chunk slow. After a chunk with at most fewRows, the next one is larger.
	fewRows = 100
)

// chunkSettings suits one statement over some ten thousand rows. Postgres plans each chunk, with hash joins regardless
// of the statistics; only lateral joins look rows up one by one. Compiling a plan (JIT) would take longer than a
// chunk. Behind a pooler, sessions do not have our other settings.
const chunkSettings = `SET LOCAL work_mem = '64MB'; SET LOCAL jit = off;
	SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL enable_hashjoin = on; SET LOCAL enable_bitmapscan = on; SET LOCAL enable_nestloop = off`

// sql returns the statement that reads and checks a chunk.
func (p *Pass) sql() string {
	queries := []auditQuery{waitingQuery, underWayQuery, pushQuery, attemptQuery, recordQuery, overlapQuery, requestQuery}
	if policy := sameForAll(p.plan.Policy); len(policy) > 0 {
		queries = append(queries, promisedQuery(policy), actualQuery(policy))
	}
	sql := chunkRows
	for _, q := range queries {
		sql += `SELECT *, NULL::bigint FROM (` + q.sql() + `) found (name, tenant_id, recipient, push_id, detail, at) UNION ALL `
	}
	return sql + chunkSum
}

// chunk describes what one snapshot read.
type chunk struct {
	rows    int
	reading time.Duration // without the planning time, which depends on the partitions and not on the chunk
	open    []time.Time   // hours whose rows can still change
}

// aheadSQL finds attempts under way and overdue pushes with send times after the spans of the pass.
var aheadSQL = `
	SELECT l.recipient_key FROM ` + allUnderWay + ` l WHERE l.send_at >= @until
	UNION
	SELECT l.recipient_key FROM ` + allForgotten + ` l WHERE l.send_at >= @until
	LIMIT 1000`

// read reads the next chunk and moves the walk past it.
func (p *Pass) read(ctx context.Context, w *walk, found func(Finding, time.Time)) (c chunk, err error) {
	err = p.snapshot(ctx, p.patient, func(ctx context.Context, tx pgx.Tx) error {
		if !w.Begun {
			rows, _ := tx.Query(ctx, aheadSQL, pgx.NamedArgs{"grace": auditGrace, "until": w.Spans[len(w.Spans)-1].Until})
			w.Ahead, err = pgx.CollectRows(rows, pgx.RowTo[int64])
			w.Begun = true
			return err
		}
		if p.planning == 0 {
			began := time.Now()
			if _, err := tx.Exec(ctx, `EXPLAIN `+p.sql(), p.args(*w)); err != nil {
				return err
			}
			p.planning = time.Since(began)
		}
		began := time.Now()
		rows, _ := tx.Query(ctx, p.sql(), p.args(*w))
		var (
			f                         Finding
			check, recipient, details *string
			tenant, push              *uuid.UUID
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
		if err == nil {
			err = p.readTerms(ctx, tx, *w, found)
		}
		w.pass(p.last(*w))
		c.reading = time.Since(began) - p.planning
		return err
	})
	return c, err
}

// readTerms checks promises and sends of recipients whose rules differ from push to push.
func (p *Pass) readTerms(ctx context.Context, tx pgx.Tx, w walk, found func(Finding, time.Time)) error {
	if p.reach == nil { // a policy that is made later and reaches further counts from the next pass on
		reach, some, err := p.store.historicReach(ctx, tx, p.plan.Policy)
		if err != nil || !some {
			return err
		}
		p.reach = &reach
	}
	reach, args := *p.reach, p.args(w)
	since := args["since"].(time.Time)
	args["booked_since"], args["begun_since"] = since.Add(-reach), since.Add(-reach-longAttempt)
	a := p.store.newTermsAudit(p.plan.Policy, func(f Finding, at time.Time) { found(f, at.Truncate(auditSlice)) })
	err := a.run(ctx, tx, promisesSQL(`(
		SELECT * FROM pushes WHERE `+inKeys+` AND send_at >= @booked_since::timestamptz AND send_at < @until::timestamptz AND freed = false
			AND status IN ('scheduled', 'sent')
	)`, `p.send_at <@ @stretch::tstzmultirange`), args, false)
	if err != nil {
		return err
	}
	return a.run(ctx, tx, sendsSQL(`(
		SELECT * FROM sends WHERE `+inKeys+` AND started_at >= @begun_since::timestamptz AND started_at < @begun_until::timestamptz AND ended_at IS NOT NULL
	)`, begun(`p.started_at`)), args, true)
}

// snapshot calls read in a transaction that is limited to the time of a chunk, or not limited if patient.
func (p *Pass) snapshot(ctx context.Context, patient bool, read func(ctx context.Context, tx pgx.Tx) error) error {
	most := cmp.Or(p.limit, chunkTime)
	limit := most + 2*p.planning
	if patient {
		limit = 0
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 10*most) // in case the connection does not answer
		defer cancel()
	}
	return pgx.BeginTxFunc(ctx, p.store.db.Pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, chunkSettings+`; SET LOCAL statement_timeout = `+pg.Milliseconds(limit)); err != nil {
			return err
		}
		return read(ctx, tx)
	})
}

// args returns the arguments of the next chunk's statement.
func (p *Pass) args(w walk) pgx.NamedArgs {
	spans, file, kept := w.stretch(), p.plan.Policy, p.plan.Kept
	since, until, latest := spans[0].Since, spans[len(spans)-1].Until, w.latest()
	begunUntil := until
	if latest {
		begunUntil = farAhead
	}
	args := pgx.NamedArgs{
		"key": w.Key, "last": p.last(w), "since": since, "until": until, "latest": latest,
		"booked_since": since.Add(-file.Reach()), "begun_since": since.Add(-file.Reach() - longAttempt), "begun_until": begunUntil,
		"stretch": multirange(spans), "end": w.Spans[len(w.Spans)-1].Until, "spans": multirange(w.Spans), "ahead": w.Ahead, "settled": settled,
		"grace": auditGrace, "various": !file.Plain(), "keep_pushes": cmp.Or(kept.Pushes, forever), "keep_sends": cmp.Or(kept.Sends, forever),
	}
	ruleArgs(args, sameForAll(file))
	return args
}

// last returns the last key of the next chunk.
func (p *Pass) last(w walk) int64 {
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

// endsSQL finds the first and the last recipient with rows in a range of keys.
const endsSQL = `
	SELECT min(first), max(last) FROM (
		SELECT (SELECT recipient_key FROM pushes WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM pushes WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT recipient_key FROM sends WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM sends WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
		UNION ALL
		SELECT (SELECT recipient_key FROM live WHERE ` + inKeys + ` ORDER BY recipient_key LIMIT 1), (SELECT recipient_key FROM live WHERE ` + inKeys + ` ORDER BY recipient_key DESC LIMIT 1)
	) ends (first, last)`

// narrow reduces a chunk that took too long to about a quarter. ok is false if the chunk has only one recipient; then
// of is a push of that recipient.
func (p *Pass) narrow(ctx context.Context, w *walk) (ok bool, of uuid.UUID, err error) {
	alone := p.worker == uuid.Nil // a worker's audit retries later; the caller of Store.Audit waits
	err = p.snapshot(ctx, alone, func(ctx context.Context, tx pgx.Tx) error {
		var first, last *int64
		args := pgx.NamedArgs{"key": w.Key, "last": p.last(*w)}
		if err := tx.QueryRow(ctx, endsSQL, args).Scan(&first, &last); err != nil || first == nil {
			return err
		}
		if ok = *first < *last; ok {
			w.Step = uint64(*first) + (uint64(*last)-uint64(*first))/4 - uint64(w.Key) + 1
			return nil
		}
		err := tx.QueryRow(ctx, `SELECT coalesce((SELECT id FROM pushes WHERE recipient_key = $1 LIMIT 1), (SELECT push_id FROM sends WHERE recipient_key = $1 LIMIT 1), (SELECT push_id FROM live WHERE recipient_key = $1 LIMIT 1))`, *first).Scan(&of)
		return err
	})
	return ok, of, err
}
