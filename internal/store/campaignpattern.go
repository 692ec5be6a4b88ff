package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// A schedule that is given a campaign as its pattern locks that FOR KEY SHARE, and a deletion locks it FOR UPDATE, before it looks
// for schedules in a statement of its own: of the two, the later one sees what the earlier one has done.

// mostNamed is how many schedules a refusal names.
const mostNamed = 10

// keepPattern keeps the campaign that a schedule is given from being deleted until the transaction ends, or returns
// [push.ErrNoPattern]. Without a campaign, there is nothing to do.
func keepPattern(ctx context.Context, tx pgx.Tx, p *push.Schedule) error {
	if p.Campaign == uuid.Nil {
		return nil
	}
	tag, err := tx.Exec(ctx, `SELECT FROM campaigns WHERE id = $1 AND tenant_id = $2 FOR KEY SHARE`, p.Campaign, p.Tenant)
	if err == nil && tag.RowsAffected() == 0 {
		return push.ErrNoPattern
	}
	return err
}

// patternOfNone returns a [*push.CampaignStateError] for a campaign that is the pattern of schedules, also of those that have ended:
// they can go on.
func patternOfNone(ctx context.Context, tx pgx.Tx, p push.Campaign) error {
	rows, _ := tx.Query(ctx, `SELECT id FROM schedules WHERE campaign_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2`, p.ID, mostNamed+1)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(ids) == 0 {
		return err
	}
	names := make([]string, 0, mostNamed+1)
	for _, id := range ids[:min(len(ids), mostNamed)] {
		names = append(names, id.String())
	}
	if len(ids) > mostNamed {
		names = append(names, "and others")
	}
	return &push.CampaignStateError{Campaign: p, Detail: fmt.Sprintf(
		"the campaign is the pattern of these schedules: %s; delete them, or give them another pattern, before you delete it", strings.Join(names, ", "))}
}
