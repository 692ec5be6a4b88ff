package recipients

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlogs"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
)

// An erasure removes the recipient from earlier entries of the audit log.

// erasureEntrySQL writes the audit log entry of an erasure, which does not name the recipient, unless an earlier run
// of the transaction wrote it.
const erasureEntrySQL = `
	INSERT INTO audit_log (id, tenant_id, actor, actor_id, actor_name, action, target, difference)
	SELECT $1, $2, $3::text, $4::uuid, $5::text, $6::text, $7::text, $8::jsonb
	WHERE NOT EXISTS (SELECT FROM {audit_log} WHERE tenant_id = $2 AND created_at > clock_timestamp() - interval '5 minutes' AND id = $1)`

// queueEntry queues the audit log entry of the erasure.
func (e *erasure) queueEntry(ctx context.Context, b *pgx.Batch) {
	since, until := e.db.Layouts.Now()
	sql := pg.In(erasureEntrySQL, "{audit_log}", e.db.Layouts.Log().All(since.Add(-5*time.Minute-pg.ClockGap), until.Add(pg.ClockGap))...)
	b.Queue(sql, append([]any{e.entry}, auditlogs.RecordArgs(push.ActorOf(ctx), e.who.Tenant, auditlog.RecipientErase, "", nil)...)...)
}

// eraseLog erases the recipient from audit log entries that were written up to until.
func (e *erasure) eraseLog(ctx context.Context) error {
	tables := []string{pg.WeeksOfLog.Parent}
	if l := e.db.Layouts.Log(); len(l.Others) == 0 {
		tables = l.Between(time.Time{}, e.until)
	}
	for some := range slices.Chunk(tables, pg.TablesAtOnce) {
		err := e.db.Change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			b := &pgx.Batch{}
			for _, table := range some {
				b.Queue(pg.In(`UPDATE {audit_log} SET target = '', difference = '{}' WHERE tenant_id = $1 AND target = $2 AND created_at <= $3 AND action LIKE 'recipient.%'`, "{audit_log}", table),
					e.who.Tenant, e.who.ID, e.until)
			}
			return c.SendBatch(ctx, b).Close()
		})
		if err != nil {
			return err
		}
	}
	return nil
}
