package campaigns

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// A schedule that is given a campaign as its pattern locks that FOR KEY SHARE. A deletion, or a change by a caller who only drafts, locks
// it FOR UPDATE, before it looks for schedules in a statement of its own: of the two, the later one sees what the earlier one has done.

// mostNamed is how many schedules a refusal names.
const mostNamed = 10

// KeepPattern keeps the campaign that a schedule is given from being deleted until the transaction ends, or returns
// [push.ErrNoPattern]. Without a campaign, there is nothing to do.
func KeepPattern(ctx context.Context, tx pgx.Tx, p *push.Schedule) error {
	if p.Campaign == uuid.Nil {
		return nil
	}
	tag, err := tx.Exec(ctx, `SELECT FROM campaigns WHERE id = $1 AND tenant_id = $2 FOR KEY SHARE`, p.Campaign, p.Tenant)
	if err == nil && tag.RowsAffected() == 0 {
		return push.ErrNoPattern
	}
	return err
}

// lockOwnDraft locks a draft that a caller changes, and returns a [*push.ScopeError] if schedules copy it and the caller only drafts: they
// would send the change. The lock is that of a deletion, so that no schedule is given the draft meanwhile.
func lockOwnDraft(ctx context.Context, tx pgx.Tx, by push.Caller, id uuid.UUID, done string) (push.Campaign, error) {
	p, err := lockDraft(ctx, tx, by.Tenant, id, "UPDATE", done)
	if err != nil || by.May(push.ScopeCampaignsWrite) {
		return p, err
	}
	schedules, err := schedulesOf(ctx, tx, p)
	if err == nil && schedules != "" {
		err = &push.ScopeError{Scope: push.ScopeCampaignsWrite, Detail: fmt.Sprintf(
			"the campaign is the pattern of these schedules: %s; they send what it says, so that to change it needs the scope %s", schedules, push.ScopeCampaignsWrite)}
	}
	return p, err
}

// patternOfNone returns a [*push.CampaignStateError] for a campaign that is the pattern of schedules.
func patternOfNone(ctx context.Context, tx pgx.Tx, p push.Campaign) error {
	schedules, err := schedulesOf(ctx, tx, p)
	if err == nil && schedules != "" {
		err = &push.CampaignStateError{Campaign: p, Detail: fmt.Sprintf(
			"the campaign is the pattern of these schedules: %s; delete them, or give them another pattern, before you delete it", schedules)}
	}
	return err
}

// schedulesOf names the schedules of which a campaign is the pattern, also paused ones and those that have ended: they can go on. Empty:
// it is of none.
func schedulesOf(ctx context.Context, tx pgx.Tx, p push.Campaign) (string, error) {
	rows, _ := tx.Query(ctx, `SELECT id::text FROM schedules WHERE campaign_id = $1 AND deleted_at IS NULL ORDER BY id LIMIT $2`, p.ID, mostNamed+1)
	ids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if len(ids) > mostNamed {
		ids = append(ids[:mostNamed], "and others")
	}
	return strings.Join(ids, ", "), err
}
