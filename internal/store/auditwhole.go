package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// AuditScope says what an audit looks at. Whatever it says, all that waits or is under way now is looked at.
type AuditScope struct {
	Policy booking.Terms // of tenants without a policy of their own
	Since  time.Time     // what was to be sent, or was sent, before is left out; zero: nothing is
	Kept   booking.Kept
}

// AuditStep tells that a part of an audit is done.
type AuditStep struct {
	Checks []string
	Took   time.Duration
}

// Audit looks for broken guarantees in the tables alone, among what was to be sent or was sent since a time, and
// returns them all.
func (s *Store) Audit(ctx context.Context, policy quota.Policy, since time.Time) ([]Finding, error) {
	var all []Finding
	err := s.AuditEach(ctx, AuditScope{Policy: policy, Since: since}, func(f Finding) { all = append(all, f) }, nil)
	return all, err
}

// AuditEach looks for broken guarantees in one snapshot of the tables. It tells found of each, and done, unless that is
// nil, of each step. It reads whole tables with all processors: beside a service at work, [Store.BeginAudit] is the better
// way.
func (s *Store) AuditEach(ctx context.Context, scope AuditScope, found func(Finding), done func(AuditStep)) error {
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, wholeSettings); err != nil {
			return err
		}
		args, err := scope.args(ctx, tx)
		if err != nil {
			return err
		}
		for _, q := range scope.cut().queries() {
			began := time.Now()
			if _, err := tx.Exec(ctx, `SET LOCAL enable_indexscan = `+map[bool]string{true: "off", false: "on"}[q.noWalk]); err != nil {
				return err
			}
			if err := q.run(ctx, tx, args, found); err != nil {
				return err
			}
			if done != nil {
				done(AuditStep{Checks: q.names(), Took: time.Since(began)})
			}
		}
		began := time.Now()
		err = s.auditTerms(ctx, tx, scope, args, found)
		if err == nil && done != nil {
			done(AuditStep{Checks: []string{"promised-window", "actual-window", "quiet-hours", "opted-out"}, Took: time.Since(began)})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("audit: %w", classify(err))
	}
	return nil
}

// auditTerms judges where rules differ from push to push.
func (s *Store) auditTerms(ctx context.Context, tx pgx.Tx, scope AuditScope, args pgx.NamedArgs, found func(Finding)) error {
	reach, some, err := s.historicReach(ctx, tx, scope.Policy)
	if err != nil || !some {
		return err
	}
	if _, err := tx.Exec(ctx, `SET LOCAL enable_indexscan = on`); err != nil {
		return err
	}
	args["reach"] = reach
	a := s.newTermsAudit(scope.Policy, func(f Finding, _ time.Time) { found(f) })
	cut := scope.cut()
	if err := a.run(ctx, tx, judgedPromises(cut.bookings.from, `p.send_at >= @since::timestamptz`), args, false); err != nil {
		return fmt.Errorf("promised-window: %w", err)
	}
	sends := `(SELECT * FROM sends s WHERE s.ended_at IS NOT NULL AND ` + scope.started("s", back) + `)`
	if err := a.run(ctx, tx, judgedSends(sends, `p.started_at >= @since::timestamptz`), args, true); err != nil {
		return fmt.Errorf("actual-window: %w", err)
	}
	return nil
}

// wholeSettings are for a transaction that may read whole tables, with all processors. Plans are made for the times that
// are asked for. A parallel hash would need more shared memory than a container usually has.
const wholeSettings = `
	SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL work_mem = '256MB'; SET LOCAL idle_in_transaction_session_timeout = 0;
	SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on;
	SET LOCAL max_parallel_workers_per_gather = 2; SET LOCAL enable_parallel_hash = off`

// queries are all that an audit asks, in this order.
func (c auditCut) queries() []auditQuery {
	all := []auditQuery{
		c.waitingQuery(), c.underWayQuery(), c.pushQuery(), c.attemptQuery(), c.recordQuery(), c.overlapQuery(), c.requestQuery(),
	}
	if len(c.policy) > 0 {
		all = append(all, c.promisedQuery(), c.actualQuery())
	}
	return all
}

// itsShard is the shard of a push p of any table.
const itsShard = `(p.recipient_key & 255)`

// cut has the queries read each table once.
func (s AuditScope) cut() auditCut {
	return auditCut{
		policy:    sameForAll(s.Policy),
		forgotten: allForgotten,
		underWay:  allUnderWay,
		busy: `EXISTS (
			SELECT FROM live o WHERE o.recipient_key = ANY (ARRAY[l.recipient_key]) AND o.token IS NOT NULL AND o.next_at - now() > - @grace::interval)`,
		pushes:  auditRows{`pushes`, s.promised("p", "")},
		known:   `pushes`,
		shown:   `(SELECT ` + shownColumns + ` FROM pushes p ` + itsLive(itsShard) + `)`,
		tenants: `tenants`,
		itsLive: itsLive(itsShard),
		records: s.records(),
		sends:   auditRows{allSends, s.started("s", "")},
		sendAt:  `s.started_at`,
		around:  auditRows{`(SELECT * FROM ` + allSends + ` s WHERE ` + s.started("s", back) + `)`, `started_at >= @since::timestamptz`},
		bookings: auditRows{`(
				SELECT * FROM pushes WHERE freed = false AND status IN ('scheduled', 'sent') AND ` + s.promised("pushes", ` - @reach::interval`) + `
			)`, `at >= @since::timestamptz`},
		requests: `(SELECT * FROM pushes WHERE idempotency_id IS NOT NULL AND ` + s.promised("pushes", "") + `)`,
		keyed:    `idempotency`,
	}
}

// args are the arguments that queries may name. Times count from the beginning of the transaction, which is about that
// of the snapshot.
//
// The tenants that have pushes lead to those of some time by the index pushes_tenant, if they are few enough for that
// to be the shorter way.
func (s AuditScope) args(ctx context.Context, tx pgx.Tx) (pgx.NamedArgs, error) {
	args := auditArgs(s.Policy, s.Kept)
	args["since"], args["until"] = s.Since, booking.EndOfTime
	if !s.Since.IsZero() {
		rows, _ := tx.Query(ctx, `
			WITH RECURSIVE t (id) AS (
				(SELECT tenant_id FROM pushes ORDER BY tenant_id LIMIT 1)
				UNION ALL SELECT (SELECT tenant_id FROM pushes WHERE tenant_id > t.id ORDER BY tenant_id LIMIT 1) FROM t WHERE t.id IS NOT NULL
			) SELECT id FROM t WHERE id IS NOT NULL`)
		tenants, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
		if err != nil {
			return nil, err
		}
		args["tenants"] = tenants
	}
	return args, nil
}

// promised is the condition on the table pushes for what was to be sent in the scope, or so long before.
func (s AuditScope) promised(table, before string) string {
	if s.Since.IsZero() {
		return "true"
	}
	return table + `.tenant_id = ANY (@tenants::uuid[]) AND ` + table + `.send_at >= @since::timestamptz` + before + ` AND ` + table + `.send_at < @until::timestamptz`
}

// records are at least the attempts of what was to be sent in the scope.
func (s AuditScope) records() string {
	if s.Since.IsZero() {
		return "sends"
	}
	return `(SELECT * FROM sends WHERE push_id IN (SELECT id FROM pushes WHERE ` + s.promised("pushes", "") + `))`
}

// started is the condition on attempts for what was sent in the scope, or so long before.
func (s AuditScope) started(table, before string) string {
	if s.Since.IsZero() {
		return "true"
	}
	return table + `.started_at >= @since::timestamptz` + before
}
