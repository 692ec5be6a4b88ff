package store

import (
	"context"
	"slices"
	"time"

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
	return recordOnce(ctx, s, tenant, collectLogPosition, none, recordSQL+` RETURNING created_at, id`, recordArgs(push.ActorOf(ctx), tenant, push.ActRecipientImport, "", nil)...)
}

func collectLogPosition(row pgx.CollectableRow) (at push.LogPosition, err error) {
	return at, row.Scan(&at.At, &at.ID)
}

// EndImport adds to the entry of an import how many recipients it has created and updated, and how many pushes it has canceled.
func (s *Store) EndImport(ctx context.Context, tenant uuid.UUID, at push.LogPosition, created, updated, canceled int) error {
	d := difference{}
	d.show("created", nil, created)
	d.show("updated", nil, updated)
	d.show("canceled", nil, canceled)
	return s.change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, in(`UPDATE {audit_log} SET difference = $4 WHERE tenant_id = $1 AND created_at = $2 AND id = $3`, "{audit_log}", s.layouts.log().at(at.At)),
			tenant, at.At, at.ID, d.text())
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
	since, until := e.layouts.now()
	sql := in(erasureLoggedSQL, "{audit_log}", e.layouts.log().all(since.Add(-5*time.Minute-clockGap), until.Add(clockGap))...)
	b.Queue(sql, append([]any{e.entry}, recordArgs(push.ActorOf(ctx), e.who.Tenant, push.ActRecipientErase, "", nil)...)...)
}

// log erases the recipient from the entries until now.
func (e *erasure) log(ctx context.Context) error {
	tables := []string{weeksOfLog.parent}
	if l := e.layouts.log(); len(l.others) == 0 {
		tables = l.between(time.Time{}, e.until)
	}
	for some := range slices.Chunk(tables, tablesAtOnce) {
		err := e.change(ctx, e.who.Tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			b := &pgx.Batch{}
			for _, table := range some {
				b.Queue(in(`UPDATE {audit_log} SET target = '', difference = '{}' WHERE tenant_id = $1 AND target = $2 AND created_at <= $3 AND action LIKE 'recipient.%'`, "{audit_log}", table),
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
