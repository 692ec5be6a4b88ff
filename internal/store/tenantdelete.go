package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/schedules"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The deletion of a tenant begins with one transaction that ends its keys, sessions, webhooks, schedules and campaigns and
// marks the tenant. From then on, every transaction that books or claims finds the mark. Small transactions delete all other
// rows, in any order. An interrupted deletion continues with the remaining rows. The row of the tenant goes last.

// DeletionRest is the minimum time between the first and the last step of a deletion. Programs cache keys for a
// second, and earlier requests have ended by then.
const DeletionRest = time.Minute

// deletedAtOnce is the number of rows that one transaction deletes, and sweptPages the number of pages that one scans.
const (
	deletedAtOnce = 2000
	sweptPages    = 2000
)

// beginDeletionSQL lists the statements of the first step. $1 is the tenant.
var beginDeletionSQL = []string{
	`UPDATE tenants SET deleting_at = clock_timestamp() WHERE id = $1 AND deleting_at IS NULL`,
	`UPDATE api_keys SET revoked_at = clock_timestamp() WHERE tenant_id = $1 AND revoked_at IS NULL`,
	`DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE tenant_id = $1)`,
	`UPDATE users SET disabled_at = coalesce(disabled_at, clock_timestamp()), link_hash = NULL, link_expires_at = NULL WHERE tenant_id = $1`,
	`UPDATE webhooks SET deleted_at = clock_timestamp(), secret = '', old_secret = '', old_secret_until = NULL WHERE tenant_id = $1 AND deleted_at IS NULL`,
	`UPDATE schedules SET ` + schedules.DeletedSchedule + ` WHERE tenant_id = $1 AND deleted_at IS NULL`,
	`UPDATE campaigns SET status = 'canceled', ended_at = clock_timestamp(), worker = NULL, lease_until = NULL WHERE tenant_id = $1 AND ended_at IS NULL`,
	`UPDATE pauses SET ended_at = clock_timestamp() WHERE tenant_id = $1 AND ended_at IS NULL`,
	`UPDATE policy_operations SET status = 'replaced', ended_at = clock_timestamp() WHERE tenant_id = $1 AND status = 'running'`,
	`UPDATE bulk_changes SET status = 'canceled', ended_at = clock_timestamp() WHERE tenant_id = $1 AND ended_at IS NULL`,
}

// BeginDeletion runs the first step of the deletion of the tenant with a name. From then on nothing is accepted for
// the tenant, and nothing is sent except by attempts under way. It may be called again. It returns the id of the
// tenant, or [push.ErrNotFound].
func (s *Store) BeginDeletion(ctx context.Context, name string) (tenant uuid.UUID, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, `SELECT id FROM tenants WHERE name = $1 FOR UPDATE`, name).Scan(&tenant); err != nil {
				return err
			}
			for _, sql := range beginDeletionSQL {
				if _, err := tx.Exec(ctx, sql, tenant); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return tenant, err
}

// deleteWaitingSQL deletes waiting pushes and their rows in live, which it locks first.
const deleteWaitingSQL = `
	WITH next AS MATERIALIZED (
		SELECT recipient_key, send_at, push_id, shard FROM live WHERE tenant_id = $1 AND token IS NULL LIMIT $2 FOR UPDATE SKIP LOCKED
	), waiting AS (
		DELETE FROM live l USING next n WHERE l.recipient_key = n.recipient_key AND l.send_at = n.send_at AND l.push_id = n.push_id AND l.shard = n.shard
		RETURNING l.push_id, l.send_at, l.shard
	), gone AS (
		DELETE FROM pushes p USING waiting w WHERE p.id = w.push_id AND p.send_at = w.send_at AND p.shard = w.shard RETURNING p.recipient_key
	)` + goneCrowdsSQL

// goneCrowdsSQL deletes the rows in crowds of the recipients of deleted pushes.
const goneCrowdsSQL = `, uncrowded AS (DELETE FROM crowds c USING gone WHERE c.recipient_key = gone.recipient_key) SELECT FROM gone`

// tenantRows lists the tables with rows of a tenant, $1, and the conditions of these rows. It leaves out waiting
// pushes. Tables that refer to others come first. A name in braces is a table with partitions.
var tenantRows = []struct{ table, where string }{
	{"{pushes}", `tenant_id = $1 AND NOT EXISTS (SELECT FROM live l WHERE l.recipient_key = d.recipient_key AND l.send_at = d.send_at AND l.push_id = d.id)`},
	{"{sends}", `tenant_id = $1 AND outcome || '' <> ''`},
	{"webhook_deliveries", `webhook_id IN (SELECT id FROM webhooks WHERE tenant_id = $1)`},
	{"webhooks", `tenant_id = $1`},
	{"tenant_channels", `tenant_id = $1`},
	{"schedule_runs", `schedule_id IN (SELECT id FROM schedules WHERE tenant_id = $1)`},
	{"schedules", `tenant_id = $1`},
	{"campaign_recipients", `audience_id IN (SELECT audience_id FROM campaigns WHERE tenant_id = $1 UNION SELECT id FROM campaign_uploads WHERE tenant_id = $1)`},
	{"campaign_uploads", `tenant_id = $1`},
	{"campaigns", `tenant_id = $1`},
	{"bulk_change_pushes", `change_id IN (SELECT id FROM bulk_changes WHERE tenant_id = $1)`},
	{"bulk_changes", `tenant_id = $1`},
	{"pauses", `tenant_id = $1`},
	{"policy_operations", `tenant_id = $1`},
	{"policy_shadows", `tenant_id = $1`},
	{"policies", `tenant_id = $1`},
	{"recipients", `tenant_id = $1`},
	{"suppressions", `tenant_id = $1`},
	{"stats", `tenant_id = $1`},
	{"channel_outcomes", `tenant_id = $1`},
	{"unhealthy_channels", `tenant_id = $1`},
	{"channel_views", `tenant_id = $1`},
	{"ahead", `tenant_id = $1`},
	{"recounts", `tenant_id = $1`},
	{"audit_findings", `tenant_id = $1`},
	{"{audit_log}", `tenant_id = $1`},
	{"users", `tenant_id = $1`},
	{"api_keys", `tenant_id = $1`},
}

// sweptTables lists tables with rows of a tenant that no index finds. They are scanned once, after all other rows are
// deleted.
var sweptTables = []string{"{idempotency}", "stat_deltas", "campaign_recipients", "webhook_deliveries"}

// deleteTenantRows deletes rows of a tenant until only rows of attempts under way are left. The deletion must have
// begun. It calls deleted with the number of rows of each transaction.
func (s *Store) deleteTenantRows(ctx context.Context, tenant uuid.UUID, deleted func(rows int64)) error {
	if err := s.deletePortions(ctx, tenant, deleteWaitingSQL, deleted); err != nil {
		return err
	}
	// A key refers to its successor, so these references go first.
	if err := s.deletePortions(ctx, tenant, `UPDATE api_keys SET successor = NULL WHERE id = ANY (ARRAY(SELECT id FROM api_keys WHERE tenant_id = $1 AND successor IS NOT NULL LIMIT $2))`, func(int64) {}); err != nil {
		return err
	}
	for _, of := range tenantRows {
		tables, err := s.tables(ctx, of.table)
		if err != nil {
			return err
		}
		for _, table := range tables {
			sql := fmt.Sprintf(`DELETE FROM %[1]s WHERE ctid = ANY (ARRAY(SELECT ctid FROM %[1]s d WHERE %[2]s LIMIT $2))`, table, of.where)
			if of.table == "{pushes}" {
				sql = `WITH gone AS (` + sql + ` RETURNING recipient_key)` + goneCrowdsSQL
			}
			if err := s.deletePortions(ctx, tenant, sql, deleted); err != nil {
				return err
			}
		}
	}
	return nil
}

// deletePortions repeats a statement until it changes no row.
func (s *Store) deletePortions(ctx context.Context, tenant uuid.UUID, sql string, deleted func(rows int64)) error {
	for {
		n, err := s.deleteSome(ctx, sql, tenant, deletedAtOnce)
		if err != nil || n == 0 {
			return err
		}
		deleted(n)
	}
}

// deleteSome runs a statement and returns the number of rows. It ignores that the partition in the statement was
// dropped meanwhile.
func (s *Store) deleteSome(ctx context.Context, sql string, args ...any) (n int64, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		tag, err := c.Exec(ctx, sql, args...)
		if pg.Repartitioned(err) {
			return nil
		}
		n = tag.RowsAffected()
		return err
	})
	return n, err
}

// tables lists the partitions of a table with a name in braces, or else only the table.
func (s *Store) tables(ctx context.Context, table string) ([]string, error) {
	parent, divided := strings.CutPrefix(strings.TrimSuffix(table, "}"), "{")
	if !divided {
		return []string{table}, nil
	}
	return pg.Collect(ctx, s.db, pgx.RowTo[string], `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass($1) ORDER BY 1`, parent)
}

// sweepTenant scans for rows of a tenant that no index finds, and deletes them.
func (s *Store) sweepTenant(ctx context.Context, tenant uuid.UUID, deleted func(rows int64)) error {
	for _, name := range sweptTables {
		tables, err := s.tables(ctx, name)
		if err != nil {
			return err
		}
		for _, table := range tables {
			pages, err := pg.Collect(ctx, s.db, pgx.RowTo[int64], `SELECT pg_relation_size(to_regclass($1)) / current_setting('block_size')::bigint`, table)
			if err != nil {
				return err
			}
			for page := int64(0); page <= pages[0]; page += sweptPages {
				sql := fmt.Sprintf(`DELETE FROM %s WHERE tenant_id = $1 AND ctid >= '(%d,0)' AND ctid < '(%d,0)'`, table, page, page+sweptPages)
				n, err := s.deleteSome(ctx, sql, tenant)
				if err != nil {
					return err
				}
				deleted(n)
			}
		}
	}
	return nil
}

// DeletionLeft reports the progress of a deletion.
type DeletionLeft struct {
	UnderWay int           // number of attempts under way
	Rest     time.Duration // remaining part of [DeletionRest]
	Ended    bool          // the tenant is deleted
}

// ContinueDeletion deletes the rows of a tenant after [Store.BeginDeletion]. It deletes the tenant itself if no
// attempt is under way and [DeletionRest] has passed. Otherwise it returns what is left, and the caller calls it again
// later. It calls deleted with the number of rows of each transaction.
func (s *Store) ContinueDeletion(ctx context.Context, tenant uuid.UUID, deleted func(rows int64)) (left DeletionLeft, err error) {
	if err := s.deleteTenantRows(ctx, tenant, deleted); err != nil {
		return left, err
	}
	rows, _ := s.db.Pool.Query(ctx, `SELECT (SELECT count(*) FROM live WHERE tenant_id = $1), greatest(deleting_at + $2::interval - clock_timestamp(), '0')
		FROM tenants WHERE id = $1`, tenant, DeletionRest)
	if left, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (l DeletionLeft, err error) { return l, row.Scan(&l.UnderWay, &l.Rest) }); err != nil {
		return left, pg.Classify(err)
	}
	if left.UnderWay > 0 || left.Rest > 0 {
		return left, nil
	}
	if err := s.sweepTenant(ctx, tenant, deleted); err != nil {
		return left, err
	}
	n, err := s.deleteSome(ctx, `DELETE FROM tenants WHERE id = $1 AND deleting_at IS NOT NULL`, tenant)
	if pg.HasCode(err, pg.ForeignKeyViolation) { // an earlier request has added rows meanwhile
		return left, nil
	}
	return DeletionLeft{Ended: n > 0}, err
}
