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

// A deletion of a tenant begins with one transaction that ends all its keys, sessions, webhooks, schedules and campaigns, and marks the
// tenant: from then on, every transaction that books or claims finds the mark. All else is removed in small transactions, in any order:
// one that broke off is begun again, and goes on with what is left. The row of the tenant goes last.

// DeletionRest is the time after the first step of a deletion before its last one: programs remember keys for a second, and requests
// that were under way have ended by then.
const DeletionRest = time.Minute

// deletedAtOnce is how many rows one transaction deletes, and sweptPages how many pages of a table one looks through.
const (
	deletedAtOnce = 2000
	sweptPages    = 2000
)

// beginDeletionSQL are the statements of the first step. $1 is the tenant.
var beginDeletionSQL = []string{
	`UPDATE tenants SET deleting_at = clock_timestamp() WHERE id = $1 AND deleting_at IS NULL`,
	`UPDATE api_keys SET revoked_at = clock_timestamp() WHERE tenant_id = $1 AND revoked_at IS NULL`,
	`DELETE FROM sessions WHERE user_id IN (SELECT id FROM users WHERE tenant_id = $1)`,
	`UPDATE users SET disabled_at = coalesce(disabled_at, clock_timestamp()), link_hash = NULL, link_expires_at = NULL WHERE tenant_id = $1`,
	`UPDATE webhooks SET deleted_at = clock_timestamp(), secret = '', old_secret = '', old_secret_until = NULL WHERE tenant_id = $1 AND deleted_at IS NULL`,
	`UPDATE schedules SET ` + schedules.DeletedSchedule + ` WHERE tenant_id = $1 AND deleted_at IS NULL`,
	`UPDATE campaigns SET status = 'canceled', ended_at = clock_timestamp(), worker = NULL, lease_until = NULL WHERE tenant_id = $1 AND ended_at IS NULL`,
	`UPDATE policy_operations SET status = 'replaced', ended_at = clock_timestamp() WHERE tenant_id = $1 AND status = 'running'`,
	`UPDATE bulk_changes SET status = 'canceled', ended_at = clock_timestamp() WHERE tenant_id = $1 AND ended_at IS NULL`,
}

// BeginDeletion is the first step of the deletion of the tenant of that name: from then on nothing is accepted or sent for it, but
// attempts under way. It may be done before. It returns the id of the tenant, or [push.ErrNotFound].
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

// deleteWaitingSQL deletes pushes that wait, with their rows in live, which it locks first.
const deleteWaitingSQL = `
	WITH next AS MATERIALIZED (
		SELECT recipient_key, send_at, push_id, shard FROM live WHERE tenant_id = $1 AND token IS NULL LIMIT $2 FOR UPDATE SKIP LOCKED
	), waiting AS (
		DELETE FROM live l USING next n WHERE l.recipient_key = n.recipient_key AND l.send_at = n.send_at AND l.push_id = n.push_id AND l.shard = n.shard
		RETURNING l.push_id, l.send_at, l.shard
	), gone AS (
		DELETE FROM pushes p USING waiting w WHERE p.id = w.push_id AND p.send_at = w.send_at AND p.shard = w.shard RETURNING p.recipient_key
	)` + goneCrowdsSQL

// goneCrowdsSQL deletes what is kept about the recipients of pushes that are gone.
const goneCrowdsSQL = `, uncrowded AS (DELETE FROM crowds c USING gone WHERE c.recipient_key = gone.recipient_key) SELECT FROM gone`

// tenantRows are the rows of a tenant, $1, in each table, but for those that wait: the rows that refer to others come first. The names
// in braces are tables with partitions.
var tenantRows = []struct{ table, where string }{
	{"{pushes}", `tenant_id = $1 AND NOT EXISTS (SELECT FROM live l WHERE l.recipient_key = d.recipient_key AND l.send_at = d.send_at AND l.push_id = d.id)`},
	{"{sends}", `tenant_id = $1 AND outcome || '' <> ''`},
	{"webhook_deliveries", `webhook_id IN (SELECT id FROM webhooks WHERE tenant_id = $1)`},
	{"webhooks", `tenant_id = $1`},
	{"schedule_runs", `schedule_id IN (SELECT id FROM schedules WHERE tenant_id = $1)`},
	{"schedules", `tenant_id = $1`},
	{"campaign_recipients", `audience_id IN (SELECT audience_id FROM campaigns WHERE tenant_id = $1 UNION SELECT id FROM campaign_uploads WHERE tenant_id = $1)`},
	{"campaign_uploads", `tenant_id = $1`},
	{"campaigns", `tenant_id = $1`},
	{"bulk_change_pushes", `change_id IN (SELECT id FROM bulk_changes WHERE tenant_id = $1)`},
	{"bulk_changes", `tenant_id = $1`},
	{"policy_operations", `tenant_id = $1`},
	{"policy_shadows", `tenant_id = $1`},
	{"policies", `tenant_id = $1`},
	{"recipients", `tenant_id = $1`},
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

// sweptTables have rows of a tenant that no index finds. They are looked through once, when all else is gone.
var sweptTables = []string{"{idempotency}", "stat_deltas", "campaign_recipients", "webhook_deliveries"}

// deleteTenantRows deletes rows of a tenant whose deletion has begun, until none is left but those of attempts under way. It calls deleted
// with the rows of each transaction.
func (s *Store) deleteTenantRows(ctx context.Context, tenant uuid.UUID, deleted func(rows int64)) error {
	if err := s.deletePortions(ctx, tenant, deleteWaitingSQL, deleted); err != nil {
		return err
	}
	// A key names the one that replaced it.
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

// deletePortions runs a statement until it changes nothing more.
func (s *Store) deletePortions(ctx context.Context, tenant uuid.UUID, sql string, deleted func(rows int64)) error {
	for {
		n, err := s.deleteSome(ctx, sql, tenant, deletedAtOnce)
		if err != nil || n == 0 {
			return err
		}
		deleted(n)
	}
}

// deleteSome runs a statement. The partition that it names may be dropped meanwhile.
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

// tables lists the partitions of a table whose name is in braces, and otherwise the table.
func (s *Store) tables(ctx context.Context, table string) ([]string, error) {
	parent, divided := strings.CutPrefix(strings.TrimSuffix(table, "}"), "{")
	if !divided {
		return []string{table}, nil
	}
	return pg.Collect(ctx, s.db, pgx.RowTo[string], `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass($1) ORDER BY 1`, parent)
}

// sweepTenant looks for rows of a tenant that no index finds, and deletes them.
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

// DeletionLeft is what keeps a deletion from its end.
type DeletionLeft struct {
	UnderWay int           // attempts
	Rest     time.Duration // of [DeletionRest]
	Ended    bool          // nothing: the tenant is gone
}

// ContinueDeletion deletes what can be deleted of a tenant whose deletion has begun, and at last the tenant, if no attempt is under way and
// the first step is [DeletionRest] ago. Otherwise it returns what is in the way, and is to be called again. It calls deleted with the
// number of rows of each transaction.
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
	if pg.HasCode(err, pg.ForeignKeyViolation) { // a request that was under way has added something
		return left, nil
	}
	return DeletionLeft{Ended: n > 0}, err
}
