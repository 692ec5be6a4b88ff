package attempts

import (
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// recentSendsSQL reads the recent sends to recipients.
const recentSendsSQL = `
	SELECT k.k, s.tenant_id, s.recipient, s.push_id, coalesce(s.handed_at, s.ended_at) AS at{kinds}
	FROM unnest($1::bigint[]) AS k
	CROSS JOIN LATERAL (
		SELECT tenant_id, recipient, push_id, handed_at, ended_at{columns} FROM {sends} s
		WHERE s.shard = ANY ($3::smallint[]) AND recipient_key = k.k AND started_at > statement_timestamp() - $2::interval AND outcome IN ('delivered', 'unknown')
		OFFSET 0
	) s
	ORDER BY k.k, at`

// recentSends returns recentSendsSQL, with the kinds of the sends if they are needed.
func recentSends(kinds bool) string {
	of, columns := "", ""
	if kinds {
		of, columns = ", s.channel, s.category", ", channel, category"
	}
	return strings.NewReplacer("{kinds}", of, "{columns}", columns).Replace(recentSendsSQL)
}

// sendFound is a send that a claim found.
type sendFound struct {
	key       int64
	tenant    uuid.UUID
	recipient string
	quota.Booking
}

func scanSend(kinds bool) pgx.RowToFunc[sendFound] {
	return func(row pgx.CollectableRow) (f sendFound, err error) {
		columns := []any{&f.key, &f.tenant, &f.recipient, &f.ID, &f.At}
		if kinds {
			columns = append(columns, &f.Kind.Channel, &f.Kind.Category)
		}
		return f, row.Scan(columns...)
	}
}
