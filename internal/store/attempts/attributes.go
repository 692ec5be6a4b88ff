package attempts

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// Attributes returns the attributes of recipients, JSON objects that sendquota does not interpret, by recipient id.
// Recipients without attributes are left out. The map is not nil.
func (s *Store) Attributes(ctx context.Context, tenant uuid.UUID, ids []string) (map[string]json.RawMessage, error) {
	keys := make([]int64, len(ids))
	for i, id := range ids {
		keys[i] = push.RecipientKey(tenant, id)
	}
	known := map[string]json.RawMessage{}
	err := s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, s.db.Joining(`
			SELECT r.recipient, r.attributes FROM unnest($1::bigint[], $2::text[]) AS n (recipient_key, recipient)
			CROSS JOIN LATERAL (
				SELECT * FROM recipients WHERE shard = ANY ($4::smallint[]) AND shard = (n.recipient_key & 255)::smallint AND recipient_key = n.recipient_key OFFSET 0
			) r
			WHERE r.tenant_id = $3 AND r.recipient = n.recipient`), keys, ids, tenant, pg.ShardsOf(keys...))
		var (
			id   string
			text []byte
		)
		_, err := pgx.ForEachRow(rows, []any{&id, &text}, func() error {
			known[id] = slices.Clone(text)
			return nil
		})
		return err
	})
	return known, err
}
