package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// Finding is a broken guarantee.
type Finding struct {
	Check     string    `json:"check"` // the name of one of [Checks]
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"` // names no recipient, address or message
}

// AuditScope says what an audit looks at. Whatever it says, all that waits or is under way now is looked at.
type AuditScope struct {
	Policy quota.Policy
	Since  time.Time // what was to be sent, or was sent, before is left out; zero: nothing is
	Until  time.Time // what is to be sent from then on is left out; zero: nothing is
	Alone  bool      // for a service at work: on one processor, along the indexes; and not at all while another such audit runs
}

// AuditStep tells that a part of an audit is done.
type AuditStep struct {
	Checks []string
	Took   time.Duration
}

// auditGrace is how long workers may take before something due counts as forgotten, and how far a clock may have gone
// back.
const auditGrace = 5 * time.Minute

// Audit looks for broken guarantees in the tables alone, among what was to be sent or was sent since a time, and
// returns them all.
func (s *Store) Audit(ctx context.Context, policy quota.Policy, since time.Time) ([]Finding, error) {
	var all []Finding
	_, err := s.AuditEach(ctx, AuditScope{Policy: policy, Since: since}, func(f Finding) { all = append(all, f) }, nil)
	return all, err
}

// AuditAlone looks for broken guarantees beside a service at work: see [AuditScope]. It tells found the name of the
// check and the push of each.
func (s *Store) AuditAlone(ctx context.Context, policy quota.Policy, since, until time.Time, found func(check string, push uuid.UUID)) (ran bool, err error) {
	scope := AuditScope{Policy: policy, Since: since, Until: until, Alone: true}
	return s.AuditEach(ctx, scope, func(f Finding) { found(f.Check, f.Push) }, nil)
}

// AuditEach looks for broken guarantees in one snapshot of the tables. It tells found of each, and done, unless that is
// nil, of each step. It reports whether it ran: one that is to be alone does not while another one runs.
func (s *Store) AuditEach(ctx context.Context, scope AuditScope, found func(Finding), done func(AuditStep)) (ran bool, err error) {
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		args, err := prepareAudit(ctx, tx, scope)
		if err != nil || args == nil {
			return err
		}
		ran = true
		for _, q := range scope.queries() {
			began := time.Now()
			if err := q.run(ctx, tx, args, found); err != nil {
				return fmt.Errorf("%s: %w", q.checks[0].name, err)
			}
			if done != nil {
				done(AuditStep{Checks: q.names(), Took: time.Since(began)})
			}
		}
		return nil
	})
	if err != nil {
		return ran, fmt.Errorf("audit: %w", classify(err))
	}
	return ran, nil
}

// auditSettings are for a transaction that reads much. Plans are made for the times that are asked for. Without more
// settings it keeps to the indexes, as all others do: even what has no index of its own, the attempts of some time, is
// then found by reading an index, not a table.
const auditSettings = `SET LOCAL plan_cache_mode = force_custom_plan; SET LOCAL work_mem = '256MB'; SET LOCAL idle_in_transaction_session_timeout = 0`

// wholeTables is for an audit that may read whole tables, with all processors. A parallel hash would need more shared
// memory than a container usually has.
const wholeTables = `
	SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on;
	SET LOCAL enable_parallel_hash = off`

// auditLock is held by the audit that is to be alone. Locks named by two numbers are apart from those of recipients,
// which have one.
const auditLock = `SELECT pg_try_advisory_xact_lock(7321, 1)`

// prepareAudit sets the transaction up and returns the arguments of the queries, or nil if the audit is to be alone and
// is not.
func prepareAudit(ctx context.Context, tx pgx.Tx, scope AuditScope) (pgx.NamedArgs, error) {
	if _, err := tx.Exec(ctx, auditSettings); err != nil {
		return nil, err
	}
	settings := wholeTables
	if scope.Alone {
		alone := false
		if err := tx.QueryRow(ctx, auditLock).Scan(&alone); err != nil || !alone {
			return nil, err
		}
		settings = `SET LOCAL max_parallel_workers_per_gather = 0`
	}
	if _, err := tx.Exec(ctx, settings); err != nil {
		return nil, err
	}
	return scope.args(ctx, tx)
}
