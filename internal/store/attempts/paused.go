package attempts

import (
	"context"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// pausedSQL reports whether a pause covers a push now, as pause.Pause decides.
const pausedSQL = `
	SELECT EXISTS (SELECT FROM pauses WHERE (tenant_id = $1 OR tenant_id IS NULL) AND ended_at IS NULL AND (until IS NULL OR until > clock_timestamp())
		AND CASE scope WHEN 'all' THEN true WHEN 'channel' THEN name = $2 WHEN 'category' THEN name = $3 WHEN 'campaign' THEN name = $4 END)`

// PausedNow reports whether a pause stops a claimed push now. Claims find out by themselves: it is for a worker that was held
// up since its claim.
func (s *Store) PausedNow(ctx context.Context, p push.Push) (paused bool, err error) {
	campaign := ""
	if p.Campaign != uuid.Nil {
		campaign = p.Campaign.String()
	}
	err = s.db.Pool.QueryRow(ctx, pausedSQL, p.Tenant, p.Channel, p.Category, campaign).Scan(&paused)
	return paused, pg.Classify(err)
}
