package recipients

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/auditlog"
	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
)

// What the audit log says of recipients is special: an import has one entry for all of its transactions, and who was erased is not
// named any more.

// BeginImport writes the entry of an import of recipients, before it stores the first of them.
func (s *Store) BeginImport(ctx context.Context, tenant uuid.UUID) (push.LogPosition, error) {
	none := func(context.Context, pgx.Tx, push.LogPosition) error { return nil }
	return auditlog.RecordOnce(ctx, s.db, tenant, collectLogPosition, none, auditlog.RecordSQL+` RETURNING created_at, id`, auditlog.RecordArgs(push.ActorOf(ctx), tenant, push.ActRecipientImport, "", nil)...)
}

func collectLogPosition(row pgx.CollectableRow) (at push.LogPosition, err error) {
	return at, row.Scan(&at.At, &at.ID)
}

// EndImport adds to the entry of an import how many recipients it has created and updated, and how many pushes it has canceled.
func (s *Store) EndImport(ctx context.Context, tenant uuid.UUID, at push.LogPosition, created, updated, canceled int) error {
	d := auditlog.Difference{}
	d.Show("created", nil, created)
	d.Show("updated", nil, updated)
	d.Show("canceled", nil, canceled)
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, pg.In(`UPDATE {audit_log} SET difference = $4 WHERE tenant_id = $1 AND created_at = $2 AND id = $3`, "{audit_log}", s.db.Layouts.Log().At(at.At)),
			tenant, at.At, at.ID, d.Text())
		return err
	})
}

// erasureLoggedSQL writes the entry of an erasure, which names nobody, unless an earlier run of the transaction has done so.
const erasureLoggedSQL = `
	INSERT INTO audit_log (id, tenant_id, actor, actor_id, actor_name, action, target, difference)
	SELECT $1, $2, $3::text, $4::uuid, $5::text, $6::text, $7::text, $8::jsonb
	WHERE NOT EXISTS (SELECT FROM {audit_log} WHERE tenant_id = $2 AND created_at > clock_timestamp() - interval '5 minutes' AND id = $1)`

// queueLogged records the erasure.
func (e *erasure) queueLogged(ctx context.Context, b *pgx.Batch) {
	since, until := e.db.Layouts.Now()
	sql := pg.In(erasureLoggedSQL, "{audit_log}", e.db.Layouts.Log().All(since.Add(-5*time.Minute-pg.ClockGap), until.Add(pg.ClockGap))...)
	b.Queue(sql, append([]any{e.entry}, auditlog.RecordArgs(push.ActorOf(ctx), e.who.Tenant, push.ActRecipientErase, "", nil)...)...)
}

// log erases the recipient from the entries until now.
func (e *erasure) log(ctx context.Context) error {
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
