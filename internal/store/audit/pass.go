package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
)

const (
	auditLease = time.Minute         // after this time without progress, a worker loses the pass
	auditsKept = 90 * 24 * time.Hour // retention of records, from the beginning of the pass

	// settled: if a push ended longer ago, no worker changes it, nor the rows that it is compared with.
	settled = longAttempt + auditGrace
	// rereadPart: an hour older than [booking.AuditPlan.Back] is read again when the time since it was last read reaches its
	// age divided by rereadPart.
	rereadPart = 4
)

// ownAuditSQL leases the pass to a worker. It returns no row if another worker has the pass, or if none is under way
// and the last one began too recently.
const ownAuditSQL = `
	UPDATE audit_pass SET owner = $1, owned_until = clock_timestamp() + $2::interval
	WHERE (owner = $1 OR owned_until <= clock_timestamp())
		AND (state IS NOT NULL OR last IS NULL OR (last->>'Began')::timestamptz + $3::interval <= clock_timestamp())
	RETURNING state, clock_timestamp()`

// slicesSQL lists the hours of a new pass: all hours since the first one ever read that are not closed. An hour older
// than $1 is read again only when the time since it was last read reaches a fraction of its age. An answer that
// arrived late affects its hour and all later ones: see lateSQL. The transaction that records it lasts less than the
// minute that is subtracted.
const slicesSQL = `
	SELECT s FROM (
		SELECT s, a.*, max(a.changed_at) OVER (ORDER BY s) AS changed
		FROM generate_series(least($1::timestamptz, (SELECT slice FROM audited ORDER BY slice LIMIT 1)), $2::timestamptz, $3::interval) s
		LEFT JOIN audited a ON a.slice = s
	) a
	WHERE slice IS NULL OR NOT closed AND (s >= $1 OR looked_at + ($4::timestamptz - s) / $5::int <= $4)
		OR changed > looked_at - interval '1 minute'
	ORDER BY s`

// AuditSince begins a pass over everything with a send time since a time (zero: over everything), and over everything
// that waits or is under way. It changes nothing in Postgres and skips no recipient, however long one takes. Each
// chunk has its own snapshot.
func (s *Store) AuditSince(file booking.Terms, kept booking.Kept, since time.Time) *Pass {
	return &Pass{
		store: s, plan: booking.AuditPlan{Policy: booking.OrNone(file), Kept: kept},
		state: auditState{
			AuditResult: booking.AuditResult{Found: map[string]*booking.AuditFinding{}},
			Walk:        walk{Spans: []stretch{{since, farAhead}}, Left: 1, Begun: true, Key: math.MinInt64, Step: firstStep},
		},
	}
}

// Audit runs a pass of [Store.AuditSince] to its end and returns all findings.
func (s *Store) Audit(ctx context.Context, file booking.Terms, since time.Time) (all []Finding, err error) {
	p := s.AuditSince(file, booking.Kept{}, since)
	for err == nil && !p.Over() {
		_, _, err = p.Next(ctx, func(f Finding) { all = append(all, f) })
	}
	return all, err
}

// BeginAudit leases the pass of the workers' audit to a worker, or begins a new one. It returns nil while another
// worker has the pass, and if the last one began too recently.
func (s *Store) BeginAudit(ctx context.Context, worker uuid.UUID, plan booking.AuditPlan) (*Pass, error) {
	p := &Pass{store: s, worker: worker, plan: plan}
	own := false
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		var now time.Time
		state := (*auditState)(nil)
		err := c.QueryRow(ctx, ownAuditSQL, worker, auditLease, plan.Every).Scan(&state, &now)
		if own = err == nil; errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil || state != nil {
			if state != nil {
				p.state = *state
			}
			return err
		}
		return p.begin(ctx, c, now)
	})
	if err != nil || !own {
		return nil, err
	}
	return p, nil
}

// begin plans a new pass.
func (p *Pass) begin(ctx context.Context, c *pgxpool.Conn, now time.Time) error {
	from, until := now.Add(-p.plan.Back).Truncate(auditSlice), now.Add(p.plan.Ahead)
	rows, _ := c.Query(ctx, slicesSQL, from, until, auditSlice, now, rereadPart)
	hours, err := pgx.CollectRows(rows, pgx.RowTo[time.Time])
	if err != nil {
		return err
	}
	w := walk{Key: math.MinInt64, Step: firstStep}
	for _, h := range hours {
		end := h.Add(auditSlice)
		if end.After(until) {
			end = until
		}
		if n := len(w.Spans); n > 0 && w.Spans[n-1].Until.Equal(h) {
			w.Spans[n-1].Until = end
		} else {
			w.Spans = append(w.Spans, stretch{h, end})
		}
	}
	w.Left = len(w.Spans)
	p.state = auditState{AuditResult: booking.AuditResult{Began: now, Found: map[string]*booking.AuditFinding{}}, Walk: w, Since: from}
	return nil
}

// Over reports whether the pass is complete.
func (p *Pass) Over() bool { return p.state.Walk.over() }

// Share returns the finished share of a pass of [Store.AuditSince], from 0 to 1.
func (p *Pass) Share() float64 {
	if p.Over() {
		return 1
	}
	return float64(uint64(p.state.Walk.Key)-1<<63) / (1 << 64)
}

// Next audits a chunk and saves the state of the pass. It calls found with each violation, unless found is nil. own
// reports whether the worker still has the pass.
func (p *Pass) Next(ctx context.Context, found func(Finding)) (c booking.AuditChunk, own bool, err error) {
	began, findings := time.Now(), []Finding(nil)
	state, open := p.state, slices.Clone(p.state.Open)
	w := state.Walk
	read, err := p.read(ctx, &w, func(f Finding, slice time.Time) {
		if findings = append(findings, f); !slice.Before(state.Since) {
			open = append(open, slice)
		}
	})
	c.Took = time.Since(began)
	switch {
	case err != nil && pg.HasCode(err, pg.Canceled) && ctx.Err() == nil:
		findings, open, c.TooLong = nil, slices.Clone(p.state.Open), true
		w = p.state.Walk
		if err := p.tooLong(ctx, &w, &c, &open); err != nil {
			return c, true, fmt.Errorf("audit: %w", pg.Classify(err))
		}
	case err != nil:
		return c, true, fmt.Errorf("audit: %w", pg.Classify(err))
	default:
		c.Rows, p.patient = read.rows, false
		open = append(open, read.open...)
		switch {
		case read.reading < chunkAim/32:
			w.Step = 16 * min(w.Step, mostStep/16)
		case read.reading < chunkAim/8:
			w.Step = 4 * min(w.Step, mostStep/4)
		case read.reading < chunkAim/2 || read.rows <= fewRows:
			w.Step = 2 * min(w.Step, mostStep/2)
		case read.reading > chunkAim:
			w.Step = max(1, w.Step/2)
		}
	}
	for _, f := range findings {
		state.add(f)
		if found != nil {
			found(f)
		}
	}
	slices.SortFunc(open, time.Time.Compare)
	state.Walk, state.Open = w, slices.CompactFunc(open, time.Time.Equal)
	state.Busy += c.Took
	p.state = state
	own, err = p.save(ctx)
	return c, own, err
}

// tooLong makes the next chunk smaller. If the chunk has only one recipient, workers skip that recipient; the pass of
// a caller repeats the chunk without a time limit.
func (p *Pass) tooLong(ctx context.Context, w *walk, c *booking.AuditChunk, open *[]time.Time) error {
	if !w.Begun { // skip aheadSQL: these rows are checked when a later pass reaches their hours
		w.Begun = true
		return nil
	}
	smaller, of, err := p.narrow(ctx, w)
	if err != nil || smaller {
		return err
	}
	if p.worker == uuid.Nil && of != uuid.Nil {
		p.patient = true
		return nil
	}
	if c.Skipped = of; of != uuid.Nil {
		*open = append(*open, hours(w.stretch())...)
	}
	w.pass(p.last(*w))
	return nil
}

// save saves the state of a worker's pass, or records its end.
func (p *Pass) save(ctx context.Context) (own bool, err error) {
	if p.worker == uuid.Nil {
		return true, nil
	}
	err = p.store.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		if p.Over() {
			own, err = p.end(ctx, c)
			return err
		}
		state, err := json.Marshal(p.state)
		if err != nil {
			return err
		}
		tag, err := c.Exec(ctx, `UPDATE audit_pass SET state = $2, owned_until = clock_timestamp() + $3::interval WHERE owner = $1`, p.worker, state, auditLease)
		own = tag.RowsAffected() > 0
		return err
	})
	switch {
	case err != nil || !own:
	case p.Over():
		failpoint.Hit(failpoint.AuditEnded)
	default:
		failpoint.Hit(failpoint.AuditSaved)
	}
	return own, err
}

// end records the end of a pass and closes the hours whose rows can no longer change.
func (p *Pass) end(ctx context.Context, c *pgxpool.Conn) (own bool, err error) {
	st := &p.state
	var hours []time.Time
	var closed []bool
	for _, s := range st.Walk.Spans {
		for h := s.Since; !h.Add(auditSlice).After(st.Began); h = h.Add(auditSlice) {
			if h.Add(auditSlice).After(s.Until) {
				break
			}
			_, open := slices.BinarySearchFunc(st.Open, h, time.Time.Compare)
			hours, closed = append(hours, h), append(closed, !open && !h.Add(auditSlice+settled).After(st.Began))
		}
	}
	err = c.QueryRow(ctx, `
		WITH over AS (
			UPDATE audit_pass SET state = NULL, last = jsonb_set($2::jsonb, '{Ended}', to_jsonb(clock_timestamp())), owned_until = '-infinity' WHERE owner = $1
			RETURNING (last->>'Ended')::timestamptz AS ended
		), checked AS (
			INSERT INTO audited (slice, closed, looked_at)
			SELECT h, c, $5 FROM over, unnest($3::timestamptz[], $4::bool[]) AS n (h, c)
			ON CONFLICT (slice) DO UPDATE SET closed = EXCLUDED.closed, looked_at = EXCLUDED.looked_at
		), `+auditEndedSQL+` SELECT ended FROM over`, p.worker, p.state.AuditResult, hours, closed, st.Began, !st.Others, st.findings(), auditsKept).Scan(&st.Ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// RunAudit runs the pass of the workers' audit for a worker, from where it stands to its end. ended is false if
// another worker has the pass, or if the last one began too recently. RunAudit calls after behind each chunk, outside
// the snapshot; an error of after ends the run. Another worker, or the next run, continues from there.
func (s *Store) RunAudit(ctx context.Context, worker uuid.UUID, plan booking.AuditPlan, after func(booking.AuditChunk) error) (ended bool, err error) {
	p, err := s.BeginAudit(ctx, worker, plan)
	if err != nil || p == nil {
		return false, err
	}
	for !p.Over() {
		chunk, own, err := p.Next(ctx, nil)
		if err == nil && own {
			err = after(chunk)
		}
		if err != nil {
			return false, errors.Join(err, p.leave(ctx))
		}
		if !own {
			return false, nil
		}
	}
	return true, nil
}

// leave releases the pass, so that another worker can continue at once.
func (p *Pass) leave(ctx context.Context) error {
	return p.store.db.InTx(context.WithoutCancel(ctx), func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `UPDATE audit_pass SET owned_until = '-infinity' WHERE owner = $1`, p.worker)
		return err
	})
}
