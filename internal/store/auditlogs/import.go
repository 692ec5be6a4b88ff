package auditlogs

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// An import has one entry for all of its transactions.

// BeginImport writes the entry of an import, before the import stores the first line.
func (s *Store) BeginImport(ctx context.Context, tenant uuid.UUID, of auditlog.Action) (auditlog.Position, error) {
	none := func(context.Context, pgx.Tx, auditlog.Position) error { return nil }
	return RecordOnce(ctx, s.db, tenant, collectPosition, none, RecordSQL+` RETURNING created_at, id`, RecordArgs(push.ActorOf(ctx), tenant, of, "", nil)...)
}

func collectPosition(row pgx.CollectableRow) (at auditlog.Position, err error) {
	return at, row.Scan(&at.At, &at.ID)
}

// EndImport adds the numbers of created and updated lines, and of canceled pushes, to the entry of an import.
func (s *Store) EndImport(ctx context.Context, tenant uuid.UUID, at auditlog.Position, created, updated, canceled int) error {
	d := Difference{}
	d.Show("created", nil, created)
	d.Show("updated", nil, updated)
	d.Show("canceled", nil, canceled)
	return s.db.Change(ctx, tenant, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, pg.In(`UPDATE {audit_log} SET difference = $4 WHERE tenant_id = $1 AND created_at = $2 AND id = $3`, "{audit_log}", s.db.Layouts.Log().At(at.At)),
			tenant, at.At, at.ID, d.Text())
		return err
	})
}
